#include "exchange/interface_sync.hpp"

#include <cstdlib>
#include <string>
#include <string_view>

#include <bascule/interface/errors/shortened.hpp>

#include "parts.hpp"
#include "support/rejection.hpp"

namespace py = pybind11;
using namespace py::literals;

namespace bascule::python {
namespace {

/// BASCULE_CUDA_ARRAY_INTERFACE_SYNC: "0" or "1", on when it is not set.
bool sync_by_environment() {
    const char* value = std::getenv("BASCULE_CUDA_ARRAY_INTERFACE_SYNC");
    const std::string_view text = value == nullptr ? "" : value;
    if (text.empty() || text == "1") return true;
    if (text == "0") return false;
    reject_field(ErrorKind::value, "BASCULE_CUDA_ARRAY_INTERFACE_SYNC",
                 "BASCULE_CUDA_ARRAY_INTERFACE_SYNC is '{}': set it to 1 (foreign arrays' streams are waited "
                 "for) or 0 (they are not), or unset it.",
                 shortened(text));
}

}  // namespace

void bind_interface_sync(py::module_& module) {
    module.def("_interface_sync", [] {
        detail::interface_syncs.store(sync_by_environment());
        return interface_sync();
    });
    module.def(
        "_set_interface_sync", [](bool on) { detail::interface_syncs.store(on); }, "on"_a);
}

}  // namespace bascule::python
