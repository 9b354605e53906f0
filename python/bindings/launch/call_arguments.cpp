#include "launch/call_arguments.hpp"

#include <algorithm>

#include <bascule/interface/arguments/argument.hpp>
#include <bascule/interface/errors/rejection.hpp>

#include "values/launch_config.hpp"

namespace bascule::python {

UnpackedArguments::UnpackedArguments(const py::tuple& positional, const py::object& named)
    : positional_(static_cast<Py_ssize_t>(positional.size())) {
    for (const py::handle argument : positional) objects_.push_back(argument.ptr());
    if (named.is_none() || py::len(named) == 0) return;
    py::list names;
    for (const auto& [name, value] : named.cast<py::dict>()) {
        names.append(name);
        objects_.push_back(value.ptr());
    }
    names_ = py::tuple(names);
}

std::string place_of_keyword(const std::string& kernel, std::string_view keyword) {
    struct Place {
        std::vector<std::string_view> keywords;
        const char* text;  ///< {0} is the kernel, {1} the keyword
    };
    static const Place places[] = {
        {{"stream"}, "The stream is the third entry in the brackets: {0}[grid, block, stream](...)."},
        {{"grid", "block", "grid_dim", "block_dim", "griddim", "blockdim", "blocks", "threads", "gridDim",
          "blockDim"},
         "Grid and block go into the brackets: {0}[grid, block](...)."},
        {{"shared_bytes", "shared_mem", "shared", "sharedmem", "smem", "shmem"},
         "The bytes of dynamic shared memory are the fourth entry in the brackets: {0}[grid, block, stream, "
         "shared_bytes](...)."},
        {{"peer", "sync", "streams"},
         "It is an option of the launch: {0}[grid, block].options({1}=...)(...)."},
    };
    for (const Place& place : places) {
        if (std::ranges::find(place.keywords, keyword) != place.keywords.end())
            return fmt::format(fmt::runtime(place.text), kernel, keyword);
    }
    if (!is_launch_attribute(keyword)) return {};
    return fmt::format(
        "It belongs to the launch configuration: {}[bascule.LaunchConfig(grid, block, {}=...)](...).", kernel,
        keyword);
}

namespace {

/// True if a parameter is named after its position, because the text does not tell its name.
bool lacks_name(const Signature& signature) {
    for (std::size_t i = 0; i < signature.parameters.size(); ++i) {
        if (signature.parameters[i].name == fmt::format("arg{}", i + 1)) return true;
    }
    return false;
}

[[noreturn]] void fail_with_keyword(const Signature& signature, const std::string& name) {
    std::string advice = place_of_keyword(signature.kernel, name);
    if (advice.empty() && lacks_name(signature)) {
        advice =
            "A parameter is called arg1, arg2, ... after its place where the text does not give it one name: "
            "pass its argument by position";
    }
    reject(ErrorKind::type, {.name = name}, "kernel '{}' has no parameter '{}': {}{}{}", signature.kernel,
           name, bascule::to_string(signature), advice.empty() ? "" : ". ", advice);
}

/// An unknown keyword is a better explanation of a wrong count than the count.
void check_count_and_keywords(const Signature& signature, const CallArguments& arguments) {
    if (arguments.count() != signature.parameters.size() && arguments.keywords != nullptr) {
        for (const py::handle keyword : py::reinterpret_borrow<py::tuple>(arguments.keywords)) {
            const std::string name = py::str(keyword);
            if (signature.find(name) < 0) fail_with_keyword(signature, name);
        }
    }
    ArgumentPack::check_count(signature, arguments.count());
}

}  // namespace

void check_keywords(const Signature& declared, const Signature& chosen, const CallArguments& arguments) {
    if (arguments.keywords == nullptr) return;
    for (const py::handle keyword : py::reinterpret_borrow<py::tuple>(arguments.keywords)) {
        const std::string name = py::str(keyword);
        if (chosen.find(name) != declared.find(name)) fail_with_keyword(chosen, name);
    }
}

void order_arguments(const Signature& signature, const CallArguments& arguments, std::span<PyObject*> slots) {
    const auto positional = static_cast<std::size_t>(arguments.positional);
    PyObject* const keywords = arguments.keywords;
    const std::size_t named = keywords == nullptr ? 0 : static_cast<std::size_t>(PyTuple_GET_SIZE(keywords));
    check_count_and_keywords(signature, arguments);
    for (std::size_t i = 0; i < slots.size(); ++i) {
        slots[i] = i < positional ? arguments.objects[i] : nullptr;
    }
    for (std::size_t k = 0; k < named; ++k) {
        PyObject* keyword = PyTuple_GET_ITEM(keywords, static_cast<Py_ssize_t>(k));
        const std::string name = py::str(py::handle(keyword));
        const int index = signature.find(name);
        if (index < 0) fail_with_keyword(signature, name);
        PyObject*& slot = slots[static_cast<std::size_t>(index)];
        if (slot != nullptr) {
            reject(ErrorKind::type, "parameter '{}' of kernel '{}' is given twice: {}", name,
                   signature.kernel, bascule::to_string(signature));
        }
        slot = arguments.objects[positional + k];
    }
}

}  // namespace bascule::python
