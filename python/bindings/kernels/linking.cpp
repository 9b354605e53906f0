// The implementation of bascule.load_module and bascule.link.
#include <utility>
#include <vector>

#include <bascule/runtime/linking/linking.hpp>

#include "context/device_object.hpp"
#include "parts.hpp"
#include "support/toolkit.hpp"

namespace bascule::python {
namespace {

Module load_code(const py::bytes& code, const std::string& name) {
    Code made = code_from_bytes(code, name);
    const Device device = current_device();
    if (made.kind == CodeKind::lto_ir) prepare_toolkit();
    const GilReleased released;
    return load_module(std::move(made), device);
}

/// Converts a Module; (bytes, name) for code; or (text, name, first line, directory) for a text.
LinkPart to_part(const py::handle& part) {
    if (py::isinstance<Module>(part)) return part.cast<Module>();
    const auto values = part.cast<py::tuple>();
    if (values.size() == 2)
        return code_from_bytes(values[0].cast<py::bytes>(), values[1].cast<std::string>());
    return Source{values[0].cast<std::string>(), values[1].cast<std::string>(), values[2].cast<int>(),
                  values[3].cast<std::string>()};
}

Module link_parts(const py::list& given, const CompileOptions& options) {
    std::vector<LinkPart> parts;
    for (const py::handle part : given) parts.push_back(to_part(part));
    const Device device = current_device();
    prepare_toolkit();
    const GilReleased released;
    return link(parts, options, Cache::process_default(), device);
}

}  // namespace

void bind_linking(py::module_& module) {
    module.def("_load_module", &load_code, "code"_a, "name"_a);
    module.def("_link", &link_parts, "parts"_a, "options"_a);
    module.def("_is_code", [](const py::bytes& code) {
        return kind_of_code(std::string_view(code)) != CodeKind::unknown;
    });
    module.def(
        "_is_one_text", [](const Module& self) { return self.images() == nullptr; }, "module"_a);
}

}  // namespace bascule::python
