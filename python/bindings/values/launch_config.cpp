#include "values/launch_config.hpp"

#include <algorithm>
#include <iterator>
#include <type_traits>
#include <utility>

#include <fmt/format.h>

#include <bascule/interface/errors/rejection.hpp>

#include "parts.hpp"
#include "support/integers.hpp"

namespace bascule::python {
namespace {

[[noreturn]] void fail_extents(const char* what, py::handle got) {
    if (PyFloat_Check(got.ptr())) {
        reject_field(ErrorKind::type, what,
                     "`{}` must be an integer, got the float {}: write int(...), or // for /.", what,
                     std::string(py::repr(got)));
    }
    const bool many = std::string_view(what) != "shared_bytes";
    reject_field(ErrorKind::type, what, "`{}` must be {}, got {}.", what,
                 many ? "an integer or a tuple of up to three" : "an integer, the bytes of shared memory",
                 std::string(py::repr(got)));
}

std::uint64_t to_extent(const char* what, py::handle object) {
    const py::object integer = try_int(object);
    if (!integer) fail_extents(what, object);
    if (const auto value = to_uint64(integer)) return *value;
    const std::string got = py::str(integer);
    reject_field(ErrorKind::value, what, "`{}` is {}, which is {}.", what, got,
                 got.starts_with('-') ? "below 0" : "above the limit of every device");
}

std::uint32_t to_uint32(const char* what, std::uint64_t value) {
    if (value > UINT32_MAX) {
        reject_field(ErrorKind::value, what, "`{}` is {}, which is above the limit of every device.", what,
                     value);
    }
    return static_cast<std::uint32_t>(value);
}

Dim3 to_dim3(const char* what, py::handle object, const char* unit) {
    const std::vector<std::uint64_t> extents = to_extents(what, object);
    Dim3 result;
    result.x = to_uint32(what, extents[0]);
    if (extents.size() > 1) result.y = to_uint32(what, extents[1]);
    if (extents.size() > 2) result.z = to_uint32(what, extents[2]);
    if (result.count() == 0) {
        reject_field(
            ErrorKind::value, what,
            "`{}` is ({}, {}, {}): every extent is at least 1 {}. For an amount of work that may be 0 "
            "use kernel.forall(count).",
            what, result.x, result.y, result.z, unit);
    }
    return result;
}

/// A launch attribute: a keyword of bascule.LaunchConfig and of Kernel.launch, and an attribute of the class.
struct LaunchAttribute {
    const char* name;
    const char* documentation;
    bool (*set)(LaunchConfig&, const char* name,
                py::handle given);  ///< returns false if `given` has a wrong type
    py::object (*get)(const LaunchConfig&);
};

template <auto member>
bool set_attribute(LaunchConfig& config, const char* name, py::handle given) {
    auto& value = config.*member;
    using Member = std::remove_reference_t<decltype(value)>;
    if constexpr (std::is_same_v<Member, Dim3>) {
        if (!given.is_none()) value = to_dim3(name, given, "block");
    } else if constexpr (std::is_same_v<Member, ByteCount>) {
        value = to_uint32(name, to_extent(name, given));
    } else {
        py::detail::make_caster<Member> caster;
        if (!caster.load(given, true)) return false;
        value = py::detail::cast_op<Member>(caster);
    }
    return true;
}

py::object as_object(const Dim3& value) { return to_tuple(value); }
py::object as_object(const ByteCount& value) { return py::int_(value.value); }
py::object as_object(const auto& value) { return py::cast(value); }

template <auto member>
constexpr LaunchAttribute row(const char* name, const char* documentation) {
    return {name, documentation, &set_attribute<member>,
            [](const LaunchConfig& config) { return as_object(config.*member); }};
}

constexpr LaunchAttribute launch_attributes[] = {
    row<&LaunchConfig::shared_bytes>("shared_bytes", "int, bytes of dynamic shared memory per block"),
    row<&LaunchConfig::cooperative>("cooperative",
                                    "bool, all blocks are resident at once, as grid synchronisation needs"),
    row<&LaunchConfig::cluster>(
        "cluster", "int or tuple of up to three ints, blocks per cluster; needs compute capability 9.0"),
    row<&LaunchConfig::programmatic>(
        "programmatic",
        "bool, the launch may start before the previous launch on the stream has ended; needs compute "
        "capability 9.0"),
    row<&LaunchConfig::priority>("priority", "int, lower is more urgent; None means the stream's priority"),
    row<&LaunchConfig::shared_carveout>(
        "shared_carveout",
        "int, percent of the on-chip memory to prefer as shared memory; None leaves the choice to the driver"),
};

/// The attributes that do not have their default, by name.
py::dict changed_attributes(const LaunchConfig& config) {
    py::dict changed;
    for (const LaunchAttribute& each : launch_attributes) {
        py::object value = each.get(config);
        if (!value.equal(each.get({}))) changed[each.name] = std::move(value);
    }
    return changed;
}

/// Returns a Python expression.
std::string repr_of_config(const LaunchConfig& config) {
    std::string text =
        fmt::format("bascule.LaunchConfig(grid={}, block={}", std::string(py::repr(to_tuple(config.grid))),
                    std::string(py::repr(to_tuple(config.block))));
    for (const auto& [name, value] : changed_attributes(config))
        text += fmt::format(", {}={}", std::string(py::str(name)), std::string(py::repr(value)));
    return text + ")";
}

}  // namespace

py::tuple to_tuple(const Dim3& size) { return py::make_tuple(size.x, size.y, size.z); }

std::vector<std::uint64_t> to_extents(const char* what, py::handle object) {
    if (!is_several(object)) return {to_extent(what, object)};
    std::vector<std::uint64_t> extents;
    for (py::handle item : py::tuple(py::reinterpret_borrow<py::object>(object)))
        extents.push_back(to_extent(what, item));
    if (extents.empty() || extents.size() > 3) fail_extents(what, object);
    return extents;
}

bool is_launch_attribute(std::string_view name) noexcept {
    return std::ranges::any_of(launch_attributes, [&](const auto& each) { return each.name == name; });
}

LaunchConfig to_config(const char* function, py::handle grid, py::handle block, const py::dict& attributes) {
    LaunchConfig config;
    config.grid = to_dim3("grid", grid, "block");
    config.block = to_dim3("block", block, "thread");
    for (const auto& [key, value] : attributes) {
        const auto name = key.cast<std::string>();
        const auto* const found = std::ranges::find(launch_attributes, name, &LaunchAttribute::name);
        if (found == std::end(launch_attributes) || !found->set(config, found->name, value))
            throw py::type_error(fmt::format("{}(): incompatible arguments", function));
    }
    return config;
}

void bind_launch_config(py::module_& module) {
    std::string documentation =
        "The geometry and attributes of a launch. Immutable; compares and hashes by value.\n\n"
        "grid : int or tuple of up to three ints, blocks per grid\n"
        "block : int or tuple of up to three ints, threads per block\n";
    for (const LaunchAttribute& each : launch_attributes)
        documentation += fmt::format("{} : {}\n", each.name, each.documentation);
    documentation += "\n>>> bascule.LaunchConfig(8, 128, cooperative=True)";
    const auto make = [](const py::object& grid, const py::object& block, const py::kwargs& attributes) {
        return to_config("__init__", grid, block, attributes);
    };
    py::class_<LaunchConfig> type(module, "LaunchConfig", documentation.c_str());
    type.def(py::init(make), "grid"_a, "block"_a)
        .def_property_readonly("grid", [](const LaunchConfig& config) { return to_tuple(config.grid); })
        .def_property_readonly("block", [](const LaunchConfig& config) { return to_tuple(config.block); });
    for (const LaunchAttribute& each : launch_attributes)
        type.def_property_readonly(each.name, each.get, each.documentation);
    type.def(py::self == py::self)
        .def("__hash__", [](const LaunchConfig& config) { return py::hash(py::str(repr_of_config(config))); })
        .def(py::pickle(
            [](const LaunchConfig& config) {
                return py::make_tuple(to_tuple(config.grid), to_tuple(config.block),
                                      changed_attributes(config));
            },
            [](const py::tuple& state) { return to_config("__setstate__", state[0], state[1], state[2]); }))
        .def("__repr__", &repr_of_config);
}

}  // namespace bascule::python
