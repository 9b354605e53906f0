// bascule.BoundLaunch: a launch whose arguments have been read and checked. Its call only orders streams and launches.
#include <cstdint>
#include <mutex>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <bascule/runtime/streams/stream_capture.hpp>

#include "arrays/array_object.hpp"
#include "classes/callable_object.hpp"
#include "context/stream_object.hpp"
#include "launch/explanation.hpp"
#include "launch/launcher.hpp"
#include "parts.hpp"
#include "support/without_gil.hpp"

namespace bascule::python {
namespace {

/// A stream that a binding was launched on.
struct UsedStream {
    StreamRef stream;
    bool stays = false;               // it exists as long as the binding
    std::shared_ptr<Stream> owned{};  // keeps it alive; null if Bascule does not own it
    std::uint32_t launches = 0;       // since the owners were last transferred
    std::uint64_t shown = 0;          // streams_shown when `hidden` was determined
    bool hidden = false;              // other code cannot capture it: launches need not query

    bool is_hidden() {
        const std::uint64_t now = streams_shown.load(std::memory_order_acquire);
        if (shown != now) [[unlikely]] {
            shown = now;
            hidden = !may_be_captured_by_others(stream);
        }
        return hidden;
    }
};

/// A prepared launch. Calls share its ownership, because `rebind` may replace it while they run.
struct Binding {
    PreparedLaunch launch;
    GilMutex mutex{};
    std::vector<UsedStream> streams{};  // guarded by `mutex`

    Binding(LaunchState& state, const CallArguments& arguments) : launch(state, arguments) {}

    ~Binding() { transfer_owners(); }

    /// Keeps all objects that launches may still use, including their code, until the launches have finished. Skips
    /// streams that other code owns: they may be destroyed by now, and each launch on them has transferred its owners.
    void transfer_owners() noexcept {
        for (const UsedStream& used : std::exchange(streams, {})) {
            if (!used.stays) continue;
            OwnerList copies;
            copies.keep(launch.owners().current());
            const Owners owners = copies.transfer();
            without_gil([&] { keep_until_done(used.stream, owners, thread_memory, &launch.code()); });
        }
    }
};

/// The arguments that were bound last.
struct Arguments {
    py::object positional;  // a tuple; `rebind()` reads it and `named` again
    py::object named;
    std::shared_ptr<Binding> binding;
};

class Bound {
  public:
    Bound(py::object launcher, LaunchState& the_state, Arguments arguments)
        : state(the_state), launcher_(std::move(launcher)), arguments_(std::move(arguments)) {}

    LaunchState& state;  // the launcher's

    /// Transfers the owners before the garbage collector clears anything.
    void finalize() noexcept { arguments_.binding->transfer_owners(); }
    /// The binding holds the arrays, too, and is not cleared: other objects of a cycle are.
    void visit_references(ReferenceVisitor& each) {
        each.only_look_at(launcher_.ptr());
        each.only_look_at(arguments_.positional.ptr());
        each.only_look_at(arguments_.named.ptr());
        if (arguments_.binding.use_count() != 1) return;  // a running launch shares it
        const Owners owners = arguments_.binding->launch.owners().current();
        for (std::size_t i = 0; i < owners.count; ++i)
            each.only_look_at(static_cast<PyObject*>(owners.objects[i]));
    }

    Arguments arguments() const {
        const std::lock_guard lock(mutex_);
        return arguments_;
    }
    std::shared_ptr<Binding> binding() const {
        const std::lock_guard lock(mutex_);
        return arguments_.binding;
    }
    /// The former binding is destroyed after the lock is released, because that may run any code.
    void replace(Arguments with) {
        const std::lock_guard lock(mutex_);
        std::swap(arguments_, with);
    }

  private:
    const py::object launcher_;  // outlives its bindings
    mutable GilMutex mutex_;
    Arguments arguments_;
};

PyTypeObject* bound_type = nullptr;

/// The owned stream if `object` is a bascule.Stream that owns `stream`; else null.
std::shared_ptr<Stream> owned_by(const py::object& object, StreamRef stream) {
    if (!object || !py::isinstance<StreamObject>(object)) return nullptr;
    const auto& candidate = object.cast<const StreamObject&>();
    return candidate.ref == stream ? candidate.owned : nullptr;
}

/// The owner of the chosen stream, if Bascule owns it and it was given, is current, or belongs to an array; else null.
std::shared_ptr<Stream> owner_of(StreamRef stream, const LaunchState& state, PreparedLaunch& launch) {
    if (auto owned = owned_by(state.stream_object(), stream)) return owned;
    if (auto owned = owned_by(current_stream_object(launch.device()), stream)) return owned;
    const Owners owners = launch.owners().current();
    for (std::size_t i = 0; i < owners.count; ++i) {
        const ArrayObject* array = as_array(static_cast<PyObject*>(owners.objects[i]));
        if (array == nullptr) continue;
        if (auto owned = owned_by(array->stream, stream)) return owned;
    }
    return nullptr;
}

/// Array owners are transferred once per this many launches on a stream, and when the binding is destroyed. This bounds
/// the number of launches whose completion is unknown.
constexpr std::uint32_t launches_per_transfer = 256;

/// Returns 0 if a launch on this stream need not hand the owners over, and counts it. Otherwise returns for how many
/// launches it hands them over: itself and those counted since the last time.
std::uint32_t launches_to_transfer(Binding& binding, StreamRef stream, const LaunchState& state) {
    const auto known = [&]() -> UsedStream* {
        for (UsedStream& used : binding.streams) {
            if (used.stream == stream) return &used;
        }
        return nullptr;
    };
    const auto counted = [](UsedStream& used) -> std::uint32_t {
        if (!used.stays || !used.is_hidden()) return 1;
        if (used.launches + 1 < launches_per_transfer) [[likely]] {
            ++used.launches;
            return 0;
        }
        return used.launches + 1;
    };
    {
        const std::lock_guard lock(binding.mutex);
        if (UsedStream* used = known()) [[likely]]
            return counted(*used);
    }
    UsedStream used{stream, stream.handle() == 1, owner_of(stream, state, binding.launch)};
    used.stays = used.stays || used.owned != nullptr;
    used.shown = streams_shown.load(std::memory_order_acquire);
    used.hidden = !may_be_captured_by_others(stream);
    const std::lock_guard lock(binding.mutex);
    if (known() == nullptr) binding.streams.push_back(std::move(used));
    return counted(*known());
}

/// Each launch hands the owners over if other code may destroy or capture the stream; if the handle is 2, which is another
/// stream in the thread that destroys the binding; and if Bascule is capturing a graph, which needs owners of its own.
void launch_bound(Bound& bound) {
    if (!bound.state.launches) return;
    const std::shared_ptr<Binding> binding = bound.binding();
    const StreamRef stream = binding->launch.stream();
    const std::uint32_t launches =
        NotedCapture::any() || stream.handle() == 2 ? 1 : launches_to_transfer(*binding, stream, bound.state);
    if (launches == 0) [[likely]] {
        binding->launch.enqueue(stream, Owners::handed_over_later());
        return;
    }
    OwnerList copies;
    copies.keep(binding->launch.owners().current());
    Owners owners = copies.transfer();
    owners.operations = launches;
    binding->launch.enqueue(stream, owners);  // if it throws, the next launch hands them over
    const std::lock_guard lock(binding->mutex);
    for (UsedStream& used : binding->streams) {
        if (used.stream == stream) used.launches = 0;
    }
}

PyObject* call_bound(PyObject* self, PyObject* const*, std::size_t flags, PyObject* keywords) {
    if (PyVectorcall_NARGS(flags) != 0 || keywords != nullptr) {
        PyErr_SetString(PyExc_TypeError,
                        "a bound launch takes no arguments: they were bound; rebind(...) binds others");
        return nullptr;
    }
    return guarded([&] {
        launch_bound(held_by<Bound>(self));
        return py::none();
    });
}

/// If an argument is refused, the former arguments stay bound.
void bind_again(Bound& bound, const py::tuple& arguments, const py::object& keywords) {
    const UnpackedArguments unpacked(arguments, keywords);
    bound.replace({arguments, keywords, std::make_shared<Binding>(bound.state, unpacked.get())});
}

PyObject* rebind(PyObject* self, PyObject* arguments, PyObject* keywords) {
    return guarded([&] {
        Bound& bound = held_by<Bound>(self);
        if (PyTuple_GET_SIZE(arguments) == 0 && keywords == nullptr) {
            const Arguments again = bound.arguments();
            bind_again(bound, py::tuple(again.positional), again.named);
        } else {
            bind_again(
                bound, py::reinterpret_borrow<py::tuple>(arguments),
                keywords == nullptr ? py::object(py::none()) : py::reinterpret_borrow<py::object>(keywords));
        }
        return py::none();
    });
}

PyObject* repr_of_bound(PyObject* self) {
    return guarded([&] {
        const Bound& bound = held_by<Bound>(self);
        const std::shared_ptr<const Binding> binding = bound.binding();
        const std::string& name = binding->launch.function().expression();
        if (!bound.state.launches) return py::str(fmt::format("<bascule.BoundLaunch {} over nothing>", name));
        const LaunchConfig& config = binding->launch.config();
        return py::str(fmt::format("<bascule.BoundLaunch {}[{}, {}]>", name, bascule::to_string(config.grid),
                                   bascule::to_string(config.block)));
    });
}

/// Returns launch_facts and the arguments as they were passed: the tuple `positional`, and the dict or None `named`.
py::dict facts_of_bound(const py::object& self) {
    if (Py_TYPE(self.ptr()) != bound_type) throw py::type_error("a bascule.BoundLaunch is needed");
    const Bound& bound = held_by<Bound>(self.ptr());
    const Arguments arguments = bound.arguments();
    const PreparedLaunch& launch = arguments.binding->launch;
    py::dict facts =
        launch_facts(bound.state, launch.function(), bound.state.launches ? &launch.config() : nullptr);
    facts["positional"] = arguments.positional;
    facts["named"] = arguments.named;
    return facts;
}

constexpr const char* bound_documentation =
    "A kernel with its launch configuration and its arguments: calling it launches.\n\n"
    "Made by `kernel[grid, block].bind(arguments)`. The arguments were checked then; each call waits for the "
    "streams that the arrays\nnamed then and makes them wait, on the stream that is current at the call "
    "where none was given. It keeps the arrays alive. Any thread may call it.";

constexpr const char* rebind_documentation =
    "rebind($self, /, *arguments, **keywords)\n--\n\n"
    "Read and check the same arguments again, or others in their place. When one is refused the old ones "
    "stay bound.";

PyMethodDef bound_methods[] = {
    {"rebind", as_method(&rebind), METH_VARARGS | METH_KEYWORDS, rebind_documentation},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

py::object make_bound_launch(py::object launcher, LaunchState& state, const CallArguments& arguments) {
    py::list positional;
    for (Py_ssize_t i = 0; i < arguments.positional; ++i) positional.append(py::handle(arguments.objects[i]));
    py::object named = py::none();
    if (arguments.keywords != nullptr) {
        py::dict keywords;
        for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(arguments.keywords); ++i) {
            keywords[py::handle(PyTuple_GET_ITEM(arguments.keywords, i))] =
                py::handle(arguments.objects[arguments.positional + i]);
        }
        named = keywords;
    }
    Arguments bound{py::tuple(positional), named, std::make_shared<Binding>(state, arguments)};
    return make_callable(bound_type, &call_bound,
                         std::make_unique<Bound>(std::move(launcher), state, std::move(bound)));
}

void register_bound_launch(py::module_& module) {
    bound_type = register_callable<Bound>(module, "bascule.BoundLaunch", bound_documentation, bound_methods,
                                          &repr_of_bound);
    module.def("_bound_facts", &facts_of_bound);
}

}  // namespace bascule::python
