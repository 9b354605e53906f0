// bascule.Graph: work that a `with` block captures and that can be launched any number of times.
#include <mutex>
#include <thread>

#include <bascule/interface/errors/rejection.hpp>
#include <bascule/runtime/graphs/graph.hpp>
#include <bascule/runtime/streams/ordering.hpp>

#include "context/current_stream.hpp"
#include "context/device_object.hpp"
#include "context/stream_object.hpp"
#include "parts.hpp"
#include "support/owners.hpp"
#include "support/without_gil.hpp"

namespace bascule::python {
namespace {

/// The value of a bascule.Graph.
struct GraphObject {
    explicit GraphObject(Device device) : graph(device) {}
    Graph graph;
    std::mutex mutex;  // guards `graph`; locked without the GIL, which releasing owners takes
    std::atomic<bool> captured{false};       // a capture has been completed
    std::atomic<std::thread::id> user;       // the thread that holds `mutex`
    GilMutex entering;                       // guards `current`
    std::unique_ptr<CurrentStream> current;  // current during the block

    /// Holds the lock and notes its thread.
    struct Used {
        explicit Used(GraphObject& object) : lock(object.mutex), user(object.user) {
            user = std::this_thread::get_id();
        }
        ~Used() { user = std::thread::id(); }
        Used(Used&&) = delete;

        const std::lock_guard<std::mutex> lock;
        std::atomic<std::thread::id>& user;
    };

    /// Calls `work(graph)` under the lock, without the GIL.
    template <class Work>
    auto use(const Work& work) {
        const GilReleased released;
        const Used alone(*this);
        return work(graph);
    }

    /// Owners of captured memory are not cleared here: they are released with the graph, or by another capture, and
    /// other objects of a cycle are cleared. A graph in use is reachable.
    void visit_references(ReferenceVisitor& each) {
        if (current != nullptr) each.only_look_at(current->object().ptr());
        if (user == std::this_thread::get_id() || !mutex.try_lock()) return;
        const std::lock_guard lock(mutex, std::adopt_lock);
        graph.visit_owners([&](const Owner& owner) {
            if (owner.release == &release_references) each.only_look_at(static_cast<PyObject*>(owner.object));
        });
    }
};

/// Replaces `current` and returns the former one. The lock is held only for that: the caller enters the new stream
/// before the call, and leaves the former one after it, when it destroys it.
std::unique_ptr<CurrentStream> exchange_current(GraphObject& object, std::unique_ptr<CurrentStream> with) {
    const std::lock_guard lock(object.entering);
    return std::exchange(object.current, std::move(with));
}

/// The value that `graph.update()` returns.
struct UpdateObject {
    py::object graph;

    void visit_references(ReferenceVisitor& each) { each(graph); }
};

GraphObject& of(const py::object& self) { return self.cast<GraphObject&>(); }

py::object stream_of(const py::object& self) {
    return py::cast(StreamObject{nullptr, of(self).graph.stream(), self});
}

py::object enter(const py::object& self) {
    GraphObject& object = of(self);
    object.use([](Graph& graph) { graph.begin(); });
    try {
        exchange_current(object, std::make_unique<CurrentStream>(stream_of(self), object.graph.stream()));
    } catch (...) {
        object.use([](Graph& graph) { graph.cancel(); });
        throw;
    }
    return self;
}

py::object enter_first(const py::object& self) {
    if (of(self).captured) {
        reject_field(ErrorKind::value, "graph",
                     "the graph has already been captured. Use `with graph.update():` to capture again, or "
                     "another bascule.Graph() to keep both.");
    }
    return enter(self);
}

/// Ends the block. An exception in the block discards the capture.
void leave(GraphObject& object, const py::object& type) {
    exchange_current(object, nullptr).reset();
    if (!type.is_none()) return object.use([](Graph& graph) { graph.cancel(); });
    object.use([](Graph& graph) { graph.end(); });
    object.captured = true;
}

void launch(GraphObject& object, const py::object& stream) {
    const Device device = object.graph.device();
    const std::optional<StreamRef> given = to_stream(stream, device);
    const StreamRef chosen =
        choose_stream(given, given ? std::nullopt : current_stream(device), std::nullopt, device);
    object.use([&](Graph& graph) { graph.launch(chosen); });
}

std::size_t size(GraphObject& object) {
    return object.use([](Graph& graph) { return graph.size(); });
}

std::string repr_of_graph(GraphObject& object) {
    const std::string where = to_string(object.graph.device());
    const bool capturing = object.use([](Graph& graph) { return graph.capturing(); });
    if (capturing) return fmt::format("<bascule.Graph being captured on {}>", where);
    if (!object.captured) return fmt::format("<bascule.Graph of nothing on {}>", where);
    const std::size_t count = size(object);
    return fmt::format("<bascule.Graph of {} operation{} on {}>", count, count == 1 ? "" : "s", where);
}

constexpr const char* documentation = R"(Work that is captured once and launched any number of times.

In a `with` block, launches, copies, fills and events go to a stream of the graph, which captures them instead of executing them.
`launch` then enqueues all of them at once, which costs the host about as much as one launch. Arguments are captured by value: each
launch uses the same arrays and numbers. Host memory that is copied to the device is read at each launch.

Arrays may name streams outside the graph: each launch waits for the work enqueued on them by then, and their later work waits for the
launch. Another stream joins the capture by waiting for an event that was recorded in it, and the graph's stream must wait for it
before the block ends. The graph keeps the arrays alive until it is destroyed and its last launch has finished.

A graph that is launched in the block becomes one operation of this graph, a child: as it is then, with the arrays that it keeps.

Operations that wait for the device (`copy_to_host`, `synchronize`, printing an array) and kernels that are not loaded yet are
errors in the block: call `kernel.prepare(...)` before it. An exception in the block discards the capture. Any thread may launch
the graph.

>>> import numpy as np, bascule
>>> twice = bascule.compile("__global__ void twice(float* x) { x[threadIdx.x] *= 2; }").twice.prepare()
>>> x = bascule.to_device(np.ones(4, "f4"))
>>> with bascule.Graph() as graph:
...     twice[1, 4](x)
...     twice[1, 4](x)
>>> for _ in range(3):
...     graph.launch()
>>> x.copy_to_host()
array([64., 64., 64., 64.], dtype=float32))";

}  // namespace

void bind_graphs(py::module_& module) {
    // Types in signatures must be bound before the functions.
    py::class_<GraphObject> type(module, "Graph", collected<GraphObject>(), documentation);
    py::class_<UpdateObject>(module, "GraphUpdate", collected<UpdateObject>(),
                             "Returned by `bascule.Graph.update`, for `with`.")
        .def("__enter__", [](const UpdateObject& self) { return enter(self.graph); })
        .def("__exit__", [](const UpdateObject& self, const py::object& kind, const py::object&,
                            const py::object&) { leave(of(self.graph), kind); });

    type.def(py::init([] {
            const Device device = current_device();
            return without_gil([&] { return std::make_unique<GraphObject>(device); });
        }))
        .def("__enter__", &enter_first)
        .def("__exit__", [](GraphObject& self, const py::object& kind, const py::object&,
                            const py::object&) { leave(self, kind); })
        .def_property_readonly("stream", &stream_of,
                               "The bascule.Stream that the `with` block captures. Nothing runs on it.")
        .def_property_readonly(
            "device", [](const GraphObject& self) { return self.graph.device(); }, "The device of the graph.")
        .def(
            "update", [](const py::object& self) { return UpdateObject{self}; },
            R"(Capture again: in `with graph.update():`, the block replaces the work of the graph for later launches.

If the new work has the same topology (the same kinds of operations in the same order and on the same streams), the executable graph is
updated in place, which is much cheaper than a new one; arrays, numbers, grids and kernels may differ. Launches that are already
enqueued do not change. An exception in the block leaves the graph unchanged.)")
        .def("launch", &launch, "stream"_a = py::none(),
             R"(Enqueue the captured work. Does not wait.

stream : where it is enqueued; None means the current stream, else the default stream. The first launch instantiates the graph.
Launches of one graph run one after another. On a stream that is being captured, by another bascule.Graph or another library, the
graph becomes one operation of that graph, a child: later updates of this graph do not change it.)")
        .def("__call__", &launch, "stream"_a = py::none(), "Same as `launch`.")
        .def("__len__", &size, "Number of captured operations.")
        .def("__bool__", [](const GraphObject&) { return true; })
        .def("__repr__", &repr_of_graph);
}

}  // namespace bascule::python
