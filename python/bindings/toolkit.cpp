#include "toolkit.hpp"

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <bascule/jit/cache.hpp>

namespace py = pybind11;

namespace bascule::python {
namespace {

bool prepared = false;  // guarded by the GIL

}  // namespace

void prepare_toolkit() {
    if (prepared) return;
    const py::object location = py::module_::import("bascule._toolkit").attr("locate")();
    ToolkitLocation native;
    native.nvrtc_libraries = location.attr("nvrtc_libraries").cast<std::vector<std::string>>();
    native.include_paths = location.attr("include_paths").cast<std::vector<std::string>>();
    Cache::process_default().compiler().set_location(std::move(native));
    prepared = true;
}

void forget_toolkit() noexcept { prepared = false; }

}  // namespace bascule::python
