#include "driver/own_operation.hpp"

namespace emulated::driver {
namespace {

thread_local constinit OwnOperation* own_operation = nullptr;

}  // namespace

OwnOperation::OwnOperation() noexcept : outer_(own_operation) {
    if (Process::get().scheduler().policy() == streams::Policy::eager) own_operation = this;
}
OwnOperation::~OwnOperation() { own_operation = outer_; }

void OwnOperation::fail(Context& context, CUresult error) noexcept {
    if (own_operation != nullptr) {
        own_operation->error_ = error;
    } else {
        context.passing_error = error;
    }
}

}  // namespace emulated::driver
