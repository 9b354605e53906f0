#include "program/step.hpp"

namespace emulated::program {

bool ends_flow(const Step& step) noexcept {
    switch (step.key.operation) {
        case Operation::bra:
        case Operation::ret:
        case Operation::exit:
        case Operation::trap:
        case Operation::assertion:
            return true;
        default:
            return false;
    }
}

}  // namespace emulated::program
