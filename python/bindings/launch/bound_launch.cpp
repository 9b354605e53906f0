// bascule.BoundLaunch: a launch whose arguments were read and checked before. Its call is ordering and cuLaunchKernelEx, nothing
// else.
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <bascule/runtime/streams/capture.hpp>
#include <bascule/runtime/streams/hidden_streams.hpp>

#include "arrays/array_object.hpp"
#include "classes/callable_object.hpp"
#include "context/current_stream.hpp"
#include "context/stream_object.hpp"
#include "launch/explanation.hpp"
#include "launch/launcher.hpp"
#include "launch/prepared_launch.hpp"
#include "parts.hpp"
#include "support/without_gil.hpp"

namespace py = pybind11;

namespace bascule::python {
namespace {

/// A stream that a binding was launched on.
struct UsedStream {
    StreamRef stream;
    bool stays = false;               // it is there until the binding goes
    std::shared_ptr<Stream> owned{};  // what makes it stay; null for a default stream
    std::uint32_t launches = 0;       // since the arrays were handed over last
    std::uint64_t shown = 0;          // streams_shown when `hidden` was asked for
    bool hidden = false;              // no library can capture it: launches need not ask

    bool is_hidden() {
        const std::uint64_t now = streams_shown.load(std::memory_order_acquire);
        if (shown != now) [[unlikely]] {
            shown = now;
            hidden = !may_be_captured_by_others(stream);
        }
        return hidden;
    }
};

/// What was bound. Launches share it, with each other and with a rebind that replaces it.
struct Binding {
    PreparedLaunch launch;
    GilMutex mutex{};
    std::vector<UsedStream> streams{};  // guarded by `mutex`

    Binding(LaunchState& state, const CallArguments& arguments) : launch(state, arguments) {}

    ~Binding() { hand_over(); }

    /// What a launch may still use, code included, is kept until it is done. A stream that others own may be gone by now, and
    /// the driver must not be asked about it: each launch there has handed its owners over.
    void hand_over() noexcept {
        for (const UsedStream& used : std::exchange(streams, {})) {
            if (!used.stays) continue;
            OwnerList copies;
            copies.keep(launch.owners().current());
            const Owners owners = copies.hand_over();
            without_gil([&] { keep_until_done(used.stream, owners, thread_memory, &launch.code()); });
        }
    }
};

/// What was bound last.
struct Arguments {
    py::object positional;  // tuple and dict, as `rebind()` reads them again
    py::object named;
    std::shared_ptr<Binding> binding;
};

class Bound {
  public:
    Bound(py::object launcher, LaunchState& the_state, Arguments arguments)
        : state(the_state), launcher_(std::move(launcher)), arguments_(std::move(arguments)) {}

    LaunchState& state;  // the launcher's

    /// What a launch may still use is kept by the queue of its stream from now on, before anything is cleared.
    void finalize() noexcept { arguments_.binding->hand_over(); }
    /// The arrays are held by the binding too, which stays as it is: others of the cycle are cleared.
    void visit_references(ReferenceVisitor& each) {
        each.only_look_at(launcher_.ptr());
        each.only_look_at(arguments_.positional.ptr());
        each.only_look_at(arguments_.named.ptr());
        if (arguments_.binding.use_count() != 1) return;  // a launch uses it
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
    /// What was bound before goes when the lock is given back: that may run any code.
    void replace(Arguments with) {
        const std::lock_guard lock(mutex_);
        std::swap(arguments_, with);
    }

  private:
    const py::object launcher_;  // longer than its bindings
    mutable GilMutex mutex_;
    Arguments arguments_;
};

PyTypeObject* bound_type = nullptr;

/// The stream where `object` is a bascule.Stream that owns it, else null.
std::shared_ptr<Stream> owned_by(const py::object& object, StreamRef stream) {
    if (!object || !py::isinstance<StreamObject>(object)) return nullptr;
    const auto& candidate = object.cast<const StreamObject&>();
    return candidate.ref == stream ? candidate.owned : nullptr;
}

/// What owns the stream that a launch chose, where that is Bascule's: it was given, is current, or an array
/// is bound to it.
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

/// The arrays are handed over when the binding goes, on streams that are still there then, and until then once for
/// so many launches: by that it is known how many have not finished.
constexpr std::uint32_t launches_a_hand_over = 256;

/// For how many launches on this stream the one that comes next hands the arrays over; 0: it does not.
std::uint32_t launches_to_hand_over(Binding& binding, StreamRef stream, const LaunchState& state) {
    const auto known = [&]() -> UsedStream* {
        for (UsedStream& used : binding.streams) {
            if (used.stream == stream) return &used;
        }
        return nullptr;
    };
    const auto counted = [](UsedStream& used) -> std::uint32_t {
        if (!used.stays || !used.is_hidden()) return 1;
        if (used.launches + 1 < launches_a_hand_over) [[likely]] {
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

/// Each launch keeps the arrays on a stream that others own, and may destroy, or may capture; on handle 2, which means
/// another stream in the thread where the binding goes; and while a graph of ours is being captured, because it has
/// owners of its own.
void launch_bound(Bound& bound) {
    if (!bound.state.launches) return;
    const std::shared_ptr<Binding> binding = bound.binding();
    const StreamRef stream = binding->launch.stream();
    const std::uint32_t launches = NotedCapture::any() || stream.handle() == 2
                                       ? 1
                                       : launches_to_hand_over(*binding, stream, bound.state);
    if (launches == 0) [[likely]] {
        binding->launch.enqueue(stream, Owners::handed_over_later());
        return;
    }
    OwnerList copies;
    copies.keep(binding->launch.owners().current());
    Owners owners = copies.hand_over();
    owners.operations = launches;
    binding->launch.enqueue(stream, owners);  // where it throws, the next launch hands over again
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

/// Nothing changes when an argument is refused.
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

/// As of a launcher, and the arguments as they were passed: `positional` and `named`, None without any.
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
