// A check for tests that no driver function is called with the GIL.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>
#include <utility>

#include <bascule/jit/process/never_destroyed.hpp>
#include <bascule/runtime/driver/driver.hpp>
#include <bascule/runtime/services.hpp>

#include "parts.hpp"
#include "support/gil.hpp"

namespace bascule::python {
namespace {

DriverFunctions real_functions;  // the driver's own table

/// Counts the calls of each function with the GIL. Never destroyed, because destructors at exit call the driver.
class Findings {
  public:
    void add(const char* function) {
        const std::lock_guard lock(mutex_);
        if (counts_[function]++ == 0) std::fprintf(stderr, "bascule: %s was called with the GIL\n", function);
    }
    std::map<std::string, std::uint64_t> take() {
        const std::lock_guard lock(mutex_);
        return std::exchange(counts_, {});
    }

  private:
    std::mutex mutex_;
    std::map<std::string, std::uint64_t> counts_;
};

Findings& findings() { return never_destroyed<Findings>(); }

template <class Function>
struct Checked;

template <class... Parameters, FunctionName name, CallMode mode>
struct Checked<DriverFunction<CUresult (*)(Parameters...), name, mode>> {
    template <auto member>
    static CUresult call(Parameters... arguments) {
        if (holds_gil()) findings().add(name.text);
        return (real_functions.*member).pointer(arguments...);
    }
};

void put_checks_before(DriverFunctions& table) {
    real_functions = table;
#define BASCULE_CHECK(name, version, mode) \
    if (table.name) table.name.pointer = &Checked<decltype(table.name)>::call<&DriverFunctions::name>;
    BASCULE_DRIVER_FUNCTIONS(BASCULE_CHECK)
    BASCULE_OPTIONAL_DRIVER_FUNCTIONS(BASCULE_CHECK)
#undef BASCULE_CHECK
}

}  // namespace

void check_calls_of_driver(py::module_& module, Services& services) {
    const char* wanted = std::getenv("BASCULE_TEST_GIL");
    if (wanted == nullptr || std::string_view(wanted) != "1") return;
    services.change_driver_table = &put_checks_before;
    module.def("_calls_with_gil", [] { return findings().take(); });
    module.def("_call_with_gil", [] {  // calls the driver with the GIL on purpose
        CUdevice device = 0;
        Driver::get().api().cuCtxGetDevice(&device);
    });
}

}  // namespace bascule::python
