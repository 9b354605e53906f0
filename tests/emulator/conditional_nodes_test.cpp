// Conditional nodes: bodies that run, or run again, as kernels decide (<cuda.h>, CUDA_CONDITIONAL_NODE_PARAMS).
#include "graphs.hpp"

using client::Drawing;
using client::Executable;
using client::Nodes;
using client::run;
using client::under_each_policy;
using client::World;

namespace {

// `set` sets the condition of `handle` to the value; `count` subtracts 1 from the word at `at`, and sets the condition
// to the result.
const char* const program = R"(.version 8.3
.target sm_80
.address_size 64
.extern .func cudaGraphSetConditional(.param .b64 handle, .param .b32 value);
.entry set(.param .u64 handle, .param .u32 value) {
  .reg .b64 %h; .reg .b32 %v; .param .b64 p0; .param .b32 p1;
  ld.param.u64 %h, [handle]; ld.param.u32 %v, [value];
  st.param.b64 [p0], %h; st.param.b32 [p1], %v; call.uni cudaGraphSetConditional, (p0, p1); ret; }
.entry count(.param .u64 handle, .param .u64 at) {
  .reg .b64 %h, %a; .reg .b32 %v; .param .b64 p0; .param .b32 p1;
  ld.param.u64 %h, [handle]; ld.param.u64 %a, [at];
  ld.global.u32 %v, [%a]; sub.u32 %v, %v, 1; st.global.u32 [%a], %v;
  st.param.b64 [p0], %h; st.param.b32 [p1], %v; call.uni cudaGraphSetConditional, (p0, p1); ret; }
)";

/// Makes conditions of graphs, their nodes, and kernels that set them.
class Conditions {
  public:
    explicit Conditions(World& world) : world_(world) {
        REQUIRE(world.api.cuLibraryLoadData(&code_, program, nullptr, nullptr, 0, nullptr, nullptr, 0) ==
                CUDA_SUCCESS);
    }
    ~Conditions() { world_.api.cuLibraryUnload(code_); }
    Conditions(const Conditions&) = delete;
    Conditions& operator=(const Conditions&) = delete;

    CUgraphConditionalHandle handle(CUgraph graph, unsigned value = 0,
                                    unsigned flags = CU_GRAPH_COND_ASSIGN_DEFAULT) {
        CUgraphConditionalHandle made = 0;
        REQUIRE(world_.api.cuGraphConditionalHandleCreate(&made, graph, world_.context(), value, flags) ==
                CUDA_SUCCESS);
        return made;
    }
    template <class Argument>
    CUgraphNode kernel(const char* name, CUgraph graph, CUgraphConditionalHandle handle, Argument argument,
                       const Nodes& after = {}) {
        CUkernel kernel = nullptr;
        REQUIRE(world_.api.cuLibraryGetKernel(&kernel, code_, name) == CUDA_SUCCESS);
        void* arguments[] = {&handle, &argument};
        const auto given = Drawing::kernel_parameters(reinterpret_cast<CUfunction>(kernel), arguments);
        CUgraphNode node = nullptr;
        REQUIRE(world_.api.cuGraphAddKernelNode(&node, graph, after.data(), after.size(), &given) ==
                CUDA_SUCCESS);
        return node;
    }
    CUresult add(CUgraphNode& node, std::vector<CUgraph>& bodies, CUgraph graph,
                 CUgraphConditionalHandle handle, CUgraphConditionalNodeType type, unsigned size,
                 const Nodes& after = {}) {
        CUgraphNodeParams all = {};
        all.type = CU_GRAPH_NODE_TYPE_CONDITIONAL;
        all.conditional.handle = handle;
        all.conditional.type = type;
        all.conditional.size = size;
        all.conditional.ctx = world_.context();
        const CUresult result =
            world_.api.cuGraphAddNode(&node, graph, after.data(), nullptr, after.size(), &all);
        if (result == CUDA_SUCCESS)
            bodies.assign(all.conditional.phGraph_out, all.conditional.phGraph_out + size);
        return result;
    }
    std::vector<CUgraph> bodies(CUgraph graph, CUgraphConditionalHandle handle,
                                CUgraphConditionalNodeType type, unsigned size, const Nodes& after = {}) {
        CUgraphNode node = nullptr;
        std::vector<CUgraph> made;
        REQUIRE(add(node, made, graph, handle, type, size, after) == CUDA_SUCCESS);
        return made;
    }

  private:
    World& world_;
    CUlibrary code_ = nullptr;
};

}  // namespace

TEST_CASE("an if node runs its body where the condition is not 0, and the other body elsewhere") {
    under_each_policy([](World& world) {
        Conditions conditions(world);
        for (const unsigned value : {0U, 1U, 5U}) {
            CAPTURE(value);
            float* x = world.pinned(3.0F);
            Drawing graph(world);
            const auto handle = conditions.handle(graph);
            const CUgraphNode set = conditions.kernel("set", graph, handle, value);
            const auto bodies = conditions.bodies(graph, handle, CU_GRAPH_COND_TYPE_IF, 2, {set});
            Drawing(world, bodies[0]).kernel("increment", x);
            Drawing(world, bodies[1]).kernel("twice", x);
            const Executable exec(world, graph);
            CHECK(run(world, exec, world.device.stream()) == CUDA_SUCCESS);
            CHECK(*x == (value != 0 ? 4.0F : 6.0F));
        }
    });
}

TEST_CASE("a while node runs its body until a kernel sets the condition to 0, at each launch anew") {
    under_each_policy([](World& world) {
        Conditions conditions(world);
        float* x = world.pinned(0.0F);
        const CUdeviceptr left = world.device.allocate(4);
        Drawing graph(world);
        const auto handle = conditions.handle(graph, 1);
        const CUgraphNode start = graph.fill(left, 7, 1);
        const auto bodies = conditions.bodies(graph, handle, CU_GRAPH_COND_TYPE_WHILE, 1, {start});
        Drawing body(world, bodies[0]);
        conditions.kernel("count", body, handle, left, {body.kernel("increment", x)});
        const CUstream p = world.device.stream();
        const Executable exec(world, graph);
        CHECK(run(world, exec, p) == CUDA_SUCCESS);
        CHECK(*x == 7.0F);
        CHECK(run(world, exec, p) == CUDA_SUCCESS);
        CHECK(*x == 14.0F);
    });
}

TEST_CASE("a switch node runs the body of its number, or none") {
    under_each_policy([](World& world) {
        Conditions conditions(world);
        for (const unsigned value : {0U, 2U, 3U, 99U}) {
            CAPTURE(value);
            const CUdeviceptr x = world.device.floats(3, 1.0F);
            Drawing graph(world);
            const auto handle = conditions.handle(graph, value);
            const auto bodies = conditions.bodies(graph, handle, CU_GRAPH_COND_TYPE_SWITCH, 3);
            for (unsigned i = 0; i < 3; ++i)
                Drawing(world, bodies[i]).kernel("twice", reinterpret_cast<void*>(x + 4 * i));
            const Executable exec(world, graph);
            CHECK(run(world, exec, world.device.stream()) == CUDA_SUCCESS);
            for (unsigned i = 0; i < 3; ++i)
                CHECK(world.device.read(x + 4 * i) == (i == value ? 2.0F : 1.0F));
        }
    });
}

TEST_CASE("conditional nodes nest, and what follows one comes after its bodies") {
    under_each_policy([](World& world) {
        Conditions conditions(world);
        float* x = world.pinned(0.0F);
        const CUdeviceptr left = world.device.allocate(4);
        Drawing graph(world);
        const auto handle = conditions.handle(graph, 1);
        CUgraphNode loop = nullptr;
        std::vector<CUgraph> outer;
        REQUIRE(conditions.add(loop, outer, graph, handle, CU_GRAPH_COND_TYPE_WHILE, 1,
                               {graph.fill(left, 3, 1)}) == CUDA_SUCCESS);
        Drawing body(world, outer[0]);
        const auto inner = conditions.handle(body);
        const CUgraphNode counted = conditions.kernel("count", body, handle, left);
        const CUgraphNode set = conditions.kernel("count", body, inner, left, {counted});
        const auto bodies = conditions.bodies(body, inner, CU_GRAPH_COND_TYPE_IF, 1, {set});
        Drawing(world, bodies[0]).kernel("increment", x);
        graph.kernel("twice", x, {loop});
        const Executable exec(world, graph);
        CHECK(run(world, exec, world.device.stream()) == CUDA_SUCCESS);
        CHECK(*x == 4.0F);  // two rounds, each of which runs the inner body and then doubles
    });
}

// cuGraphConditionalHandleCreate: "associated with a conditional node in this graph or one of its children".
TEST_CASE("a condition of a graph is for a node in a body of that graph too") {
    under_each_policy([](World& world) {
        Conditions conditions(world);
        float* x = world.pinned(1.0F);
        Drawing graph(world);
        const auto outer = conditions.handle(graph, 1), inner = conditions.handle(graph, 1);
        const CUgraph body = conditions.bodies(graph, outer, CU_GRAPH_COND_TYPE_IF, 1)[0];
        const CUgraph inside = conditions.bodies(body, inner, CU_GRAPH_COND_TYPE_IF, 1)[0];
        Drawing(world, inside).kernel("increment", x);
        const Executable exec(world, graph);
        for (int i = 0; i < 2; ++i) CHECK(run(world, exec, world.device.stream()) == CUDA_SUCCESS);
        CHECK(*x == 3.0F);
        CUgraphNode node = nullptr;
        std::vector<CUgraph> none;
        CHECK(conditions.add(node, none, graph, inner, CU_GRAPH_COND_TYPE_IF, 1) == CUDA_ERROR_INVALID_VALUE);
        const auto of_body = conditions.handle(body);
        CHECK(conditions.add(node, none, graph, of_body, CU_GRAPH_COND_TYPE_IF, 1) ==
              CUDA_ERROR_INVALID_VALUE);
    });
}

TEST_CASE("a fault in a loop's body ends the loop") {
    client::Library library({{"BASCULE_EMULATED_SCHEDULE", "lazy"}});
    World world(library);
    Conditions conditions(world);
    float* x = world.pinned(0.0F);
    Drawing graph(world);
    const auto handle = conditions.handle(graph, 1);
    const auto bodies = conditions.bodies(graph, handle, CU_GRAPH_COND_TYPE_WHILE, 1);
    Drawing(world, bodies[0]).kernel("trap", x);
    const Executable exec(world, graph);
    CHECK(run(world, exec, world.device.stream()) == CUDA_ERROR_ILLEGAL_INSTRUCTION);
}

TEST_CASE("setting a condition that no graph has is a fault that says so") {
    client::Library library({{"BASCULE_EMULATED_SCHEDULE", "lazy"}});
    World world(library);
    Conditions conditions(world);
    Drawing graph(world);
    conditions.kernel("set", graph, CUgraphConditionalHandle{12345678}, 1U);
    const Executable exec(world, graph);
    CHECK(run(world, exec, world.device.stream()) != CUDA_SUCCESS);
    CHECK(library.report().find("cudaGraphSetConditional") != std::string::npos);
}

TEST_CASE("what conditional nodes do not allow is refused") {
    World world("lazy");
    Conditions conditions(world);
    Drawing graph(world), other(world);
    const auto handle = conditions.handle(graph);
    CUgraphNode node = nullptr;
    std::vector<CUgraph> bodies;
    CHECK(conditions.add(node, bodies, other, handle, CU_GRAPH_COND_TYPE_IF, 1) == CUDA_ERROR_INVALID_VALUE);
    for (const auto& [type, size] : {std::pair{CU_GRAPH_COND_TYPE_IF, 3U},
                                     {CU_GRAPH_COND_TYPE_IF, 0U},
                                     {CU_GRAPH_COND_TYPE_WHILE, 2U},
                                     {CU_GRAPH_COND_TYPE_SWITCH, 0U}})
        CHECK(conditions.add(node, bodies, graph, handle, type, size) == CUDA_ERROR_INVALID_VALUE);

    // "Handles not associated with a conditional node may cause graph instantiation to fail."
    CUgraphExec exec = nullptr;
    CUDA_GRAPH_INSTANTIATE_PARAMS parameters = {};
    CHECK(world.api.cuGraphInstantiateWithParams(&exec, graph, &parameters) == CUDA_ERROR_INVALID_VALUE);
    CHECK(parameters.result_out == CUDA_GRAPH_INSTANTIATE_CONDITIONAL_HANDLE_UNUSED);
    CHECK(conditions.add(node, bodies, graph, handle, CU_GRAPH_COND_TYPE_IF, 1) == CUDA_SUCCESS);
    CHECK(conditions.add(node, bodies, graph, handle, CU_GRAPH_COND_TYPE_IF, 1) == CUDA_ERROR_INVALID_VALUE);
    CUgraph clone = nullptr;
    CHECK(world.api.cuGraphClone(&clone, graph) == CUDA_ERROR_NOT_SUPPORTED);
    CHECK(world.api.cuGraphAddChildGraphNode(&node, other, nullptr, 0, graph) == CUDA_ERROR_NOT_SUPPORTED);

    // "Allowed node types are kernel nodes, empty nodes, child graphs, memsets, memcopies, and conditionals."
    Drawing(world, bodies[0]).host([](void*) {}, nullptr);
    CHECK(world.api.cuGraphInstantiateWithParams(&exec, graph, &parameters) == CUDA_ERROR_INVALID_VALUE);
    CHECK(parameters.result_out == CUDA_GRAPH_INSTANTIATE_INVALID_STRUCTURE);
}
