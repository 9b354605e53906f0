// A straightforward launcher with pybind11 that makes the same checks as Bascule. Row L7 compares Bascule with it.
#include <cstdint>
#include <stdexcept>
#include <string>

#include <cuda.h>
#include <pybind11/pybind11.h>

namespace py = pybind11;

namespace {

/// Reads and checks the interface, of version 0 to 3, of a contiguous array of float. Returns the pointer.
std::uintptr_t pointer_of(const py::handle& array, bool written, std::uintptr_t stream) {
    const py::dict interface = array.attr("__cuda_array_interface__");
    const int version = interface["version"].cast<int>();
    if (version < 0 || version > 3) throw py::value_error("this version of the interface is not known");
    const py::tuple shape = interface["shape"];
    for (const py::handle extent : shape)
        if (extent.cast<std::int64_t>() < 0) throw py::value_error("shape must be integers >= 0");
    if (interface["typestr"].cast<std::string>() != "<f4") throw py::type_error("the kernel declares float");
    if (interface.contains("strides") && !interface["strides"].is_none()) {
        const py::tuple strides = interface["strides"];
        if (strides.size() != shape.size())
            throw py::value_error("strides and shape differ in their number of axes");
        std::int64_t expected = sizeof(float);
        for (py::size_t i = shape.size(); i-- > 0;) {
            const auto extent = shape[i].cast<std::int64_t>();
            if (extent > 1 && strides[i].cast<std::int64_t>() != expected)
                throw py::value_error("the array is not contiguous");
            expected *= extent;
        }
    }
    if (interface.contains("mask") && !interface["mask"].is_none())
        throw py::value_error("the array has a mask");
    const py::tuple data = interface["data"];
    if (data.size() != 2) throw py::value_error("data must be a pointer and a flag");
    const auto pointer = data[0].cast<std::uintptr_t>();
    if (written && data[1].cast<bool>())
        throw py::value_error("the array is read-only, and the kernel writes it");
    if (pointer % sizeof(float) != 0) throw py::value_error("the pointer is not aligned");
    if (interface.contains("stream") && !interface["stream"].is_none()) {
        const auto produced = interface["stream"].cast<std::uintptr_t>();
        if (produced == 0) throw py::value_error("stream must not be 0");
        if (produced != stream) throw py::value_error("the array is produced on another stream");
    }
    return pointer;
}

/// Takes three arrays of float, of which the last is written, and a float.
class Launcher {
  public:
    Launcher(std::uintptr_t launch, std::uintptr_t current, std::uintptr_t function, unsigned grid,
             unsigned block)
        : launch_(reinterpret_cast<Launch*>(launch)),
          current_(reinterpret_cast<Current*>(current)),
          function_(reinterpret_cast<CUfunction>(function)) {
        config_.gridDimX = grid;
        config_.blockDimX = block;
        config_.gridDimY = config_.gridDimZ = config_.blockDimY = config_.blockDimZ = 1;
        config_.hStream = CU_STREAM_LEGACY;
    }

    void operator()(const py::args& arguments) const {
        if (arguments.size() != 4) throw py::type_error("the kernel takes 4 arguments");
        std::uintptr_t pointers[3];
        for (py::size_t i = 0; i < 3; ++i)
            pointers[i] = pointer_of(arguments[i], i == 2, reinterpret_cast<std::uintptr_t>(config_.hStream));
        float scalar = arguments[3].cast<float>();
        void* parameters[] = {&pointers[0], &pointers[1], &pointers[2], &scalar};
        CUcontext context = nullptr;
        if (current_(&context) != CUDA_SUCCESS ||
            launch_(&config_, function_, parameters, nullptr) != CUDA_SUCCESS)
            throw std::runtime_error("the driver refused the launch");
    }

  private:
    using Launch = CUresult(const CUlaunchConfig*, CUfunction, void**, void**);
    using Current = CUresult(CUcontext*);

    Launch* launch_;
    Current* current_;
    CUfunction function_;
    CUlaunchConfig config_{};
};

}  // namespace

PYBIND11_MODULE(bench_pybind, module) {
    py::class_<Launcher>(module, "Launcher")
        .def(py::init<std::uintptr_t, std::uintptr_t, std::uintptr_t, unsigned, unsigned>())
        .def("__call__", &Launcher::operator());
}
