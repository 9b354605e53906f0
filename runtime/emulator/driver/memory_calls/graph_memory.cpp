// Memory nodes of graphs. Semantics: <cuda.h>, cuGraphAddMemAllocNode and cuGraphAddMemFreeNode.
#include "driver/memory_calls/graph_memory.hpp"

#include <algorithm>
#include <array>

#include "driver/call.hpp"
#include "driver/graph_nodes.hpp"
#include "driver/memory_calls/row_transfers.hpp"
#include "streams/known.hpp"

namespace emulated::driver {
using streams::WorkGraph;
using streams::WorkNode;

namespace {

/// Owns the address of an allocation node for as long as the node or a copy of it exists.
class GraphMemory {
  public:
    GraphMemory(CUdeviceptr address, std::uint64_t graph) : address_(address), graph_(graph) {
        All::add(address, this);
    }
    ~GraphMemory() {
        All::remove(address_);
        Process::get().end_keeping(address_);
    }
    GraphMemory(GraphMemory&&) = delete;

    /// True if `graph` may add a node that frees this memory; records that it has one.
    static bool claim_free(CUdeviceptr address, std::uint64_t graph) {
        return All::with(address, [&](GraphMemory& memory) {
            const bool taken =
                memory.freed_by_ != 0 &&
                (memory.freed_by_ == graph || graph == memory.graph_ || memory.freed_by_ == memory.graph_);
            if (!taken) memory.freed_by_ = graph;
            return !taken;
        });
    }

  private:
    using All = streams::Known<CUdeviceptr, GraphMemory>;

    const CUdeviceptr address_;
    const std::uint64_t graph_;   // the graph of the allocation node
    std::uint64_t freed_by_ = 0;  // the newest graph that frees it
};

/// The devices whose kernels may use the memory, one bit each: all devices for host memory; 0 if a description is
/// invalid.
std::uint32_t access_of(const CUDA_MEM_ALLOC_NODE_PARAMS_v2& allocation, const MemoryPool::Place& place) {
    const bool of_device = place.memory == memory::Allocation::Kind::device;
    std::uint32_t devices = of_device ? std::uint32_t{1} << place.device : ~std::uint32_t{0};
    for (std::size_t i = 0; i < allocation.accessDescCount; ++i) {
        const CUmemAccessDesc& access = allocation.accessDescs[i];
        const bool valid = access.location.type == CU_MEM_LOCATION_TYPE_DEVICE &&
                           Process::get().is_device(access.location.id) &&
                           access.flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
        if (!valid) return 0;
        devices |= std::uint32_t{1} << access.location.id;
    }
    return devices;
}

/// The addresses that nodes at any depth allocate and free.
struct Addresses {
    std::vector<CUdeviceptr> allocated, freed;
    explicit Addresses(const WorkGraph& graph) {
        graph.find([&](const WorkNode& node) {
            if (node.kind == WorkNode::Kind::allocate) allocated.push_back(node.operands[0]);
            if (node.kind == WorkNode::Kind::free) freed.push_back(node.operands[0]);
            return false;
        });
    }
    static bool has(const std::vector<CUdeviceptr>& all, CUdeviceptr address) {
        return std::ranges::find(all, address) != all.end();
    }
};

struct GraphMemoryAttribute {
    CUgraphMem_attribute which;
    std::uint64_t MemoryPool::Numbers::*bytes;
    bool is_high;
};
/// Memory stays reserved for graphs until it is trimmed, so used and reserved memory are the same number.
constexpr GraphMemoryAttribute graph_attributes[] = {
    {CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT, &MemoryPool::Numbers::reserved, false},
    {CU_GRAPH_MEM_ATTR_USED_MEM_HIGH, &MemoryPool::Numbers::used_high, true},
    {CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT, &MemoryPool::Numbers::reserved, false},
    {CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH, &MemoryPool::Numbers::reserved_high, true},
};

}  // namespace

const std::shared_ptr<MemoryPool>& graph_pool(int device) {
    static auto& pools = *[] {
        auto* made = new std::array<std::shared_ptr<MemoryPool>, most_devices>;
        for (int i = 0; auto& pool : *made) {
            pool = std::make_shared<MemoryPool>(MemoryPool::Place{.device = i++}, true, 0);
            pool->change([](auto& numbers) { numbers.release_threshold = UINT64_MAX; });
        }
        return made;
    }();
    return pools[static_cast<std::size_t>(device)];
}

void make_allocation_node(WorkNode& node, CUDA_MEM_ALLOC_NODE_PARAMS_v2& allocation, Context& context,
                          const WorkGraph& graph) {
    const CUmemPoolProps& properties = allocation.poolProps;
    Process& process = Process::get();
    require(process.environment().has_memory_pools, CUDA_ERROR_NOT_SUPPORTED);
    const MemoryPool::Place place = place_of(&properties.location, properties.allocType);
    require(allocation.bytesize != 0 && properties.handleTypes == CU_MEM_HANDLE_TYPE_NONE &&
            (allocation.accessDescs != nullptr || allocation.accessDescCount == 0));
    const std::uint32_t access = access_of(allocation, place);
    require(access != 0);
    const std::uint64_t bytes = allocation.bytesize;
    const int device = place.device;
    const auto made =
        process.heap().reserve(device, bytes, std::make_shared<memory::PoolAccess>(access), place.memory);
    if (!made) throw Failed{out_of_memory()};
    const CUdeviceptr address = *made;
    graph_pool(device)->take(bytes, nullptr);
    process.own(address, place.memory, context, share_of(graph_pool(device), bytes));
    process.keep(address);
    trace(BASCULE_EMULATED_ALLOCATE, nullptr, nullptr, bytes, "a memory allocation node");

    NodeParameters parameters(CU_GRAPH_NODE_TYPE_MEM_ALLOC);
    parameters.keeps = std::make_shared<GraphMemory>(address, graph.id);
    allocation.dptr = address;
    parameters.access.assign(allocation.accessDescs, allocation.accessDescs + allocation.accessDescCount);
    parameters.values.alloc = allocation;
    parameters.values.alloc.accessDescs = parameters.access.data();
    node.operands = {address, bytes};
    make_node(node, context, std::move(parameters),
              [address, bytes, &context, resets = resets_before_call()] {
                  if (!context.executes(resets)) return;
                  Process::get().heap().commit(address);
                  note_write(address, bytes);
              });
}

void make_free_node(WorkNode& node, CUdeviceptr address, Context& context, const WorkGraph& graph) {
    if (!GraphMemory::claim_free(address, graph.id))
        return refuse(
            CUDA_ERROR_INVALID_VALUE,
            "a memory free node: {:#x} was not returned by an allocation node, or a node of a graph "
            "frees it already",
            address);
    trace(BASCULE_EMULATED_FREE, nullptr, nullptr, 0, "a memory free node");
    NodeParameters parameters(CU_GRAPH_NODE_TYPE_MEM_FREE);
    parameters.values.free.dptr = address;
    node.operands = {address};
    make_node(node, context, std::move(parameters),
              [free = free_work(address, context), &context, resets = resets_before_call()] {
                  if (context.executes(resets)) free();
              });
}

void begin_memory(const WorkGraph& graph, bool frees_first, const StreamTarget& target) {
    const Addresses its(graph);
    if (its.allocated.empty() && its.freed.empty()) return;
    Process& process = Process::get();
    const auto is_there = [&](CUdeviceptr address) { return !process.is_being_freed(address); };
    for (const CUdeviceptr address : its.allocated) {
        if (is_there(address) && !frees_first)
            return refuse(
                CUDA_ERROR_INVALID_VALUE,
                "this graph cannot be launched: {:#x} is allocated by an earlier launch and not freed "
                "since (CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH frees it)",
                address);
    }
    for (const CUdeviceptr address : its.freed) {
        if (!Addresses::has(its.allocated, address) && !is_there(address))
            return refuse(CUDA_ERROR_INVALID_VALUE,
                          "this graph cannot be launched: {:#x} is to be freed and not allocated", address);
    }
    for (const CUdeviceptr address : its.allocated) {
        if (process.begin_free(address))
            target.context->graph.submit(*target.stream, free_work(address, *target.context));
        if (!Addresses::has(its.freed, address)) process.begin_use(address);
    }
    for (const CUdeviceptr address : its.freed) process.begin_free(address);
}

EMULATED_API(cuDeviceGraphMemTrim, 11040, CUdevice device) {
    check(device_state(device));
    graph_pool(device)->trim_to(0);
}

EMULATED_API(cuDeviceGetGraphMemAttribute, 11040, CUdevice device, CUgraphMem_attribute which, void* value) {
    check(device_state(device));
    const auto* attribute = find_row(graph_attributes, &GraphMemoryAttribute::which, which);
    require(attribute != nullptr && value != nullptr);
    *static_cast<cuuint64_t*>(value) = graph_pool(device)->numbers().*attribute->bytes;
}

EMULATED_API(cuDeviceSetGraphMemAttribute, 11040, CUdevice device, CUgraphMem_attribute which, void* value) {
    check(device_state(device));
    const auto* attribute = find_row(graph_attributes, &GraphMemoryAttribute::which, which);
    require(attribute != nullptr && attribute->is_high && value != nullptr &&
            *static_cast<const cuuint64_t*>(value) == 0);
    graph_pool(device)->change([&](MemoryPool::Numbers& numbers) { numbers.*attribute->bytes = 0; });
}

}  // namespace emulated::driver
