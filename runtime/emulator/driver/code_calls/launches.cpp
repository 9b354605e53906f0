// Kernel launches: checks of the configuration, the queued operation, and its faults.
#include <algorithm>
#include <atomic>
#include <cstring>
#include <exception>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "checks/launch_observers.hpp"
#include "driver/captures.hpp"
#include "driver/code_calls/libraries.hpp"
#include "driver/code_calls/occupancy.hpp"
#include "driver/device_limits.hpp"
#include "driver/graph_nodes.hpp"
#include "driver/interruption.hpp"
#include "driver/own_operation.hpp"
#include "machine/grids/launch.hpp"
#include "program/code.hpp"
#include "ptx/names.hpp"
#include "report/report.hpp"

namespace emulated::driver {
namespace {

std::atomic<BasculeEmulatedPrint> print_of_client{nullptr};  // null: device printf goes to standard output

bool within(unsigned value, int most) noexcept { return value >= 1 && value <= static_cast<unsigned>(most); }

bool fits(const CUlaunchConfig& config, const KernelHandle& handle, int device) noexcept {
    const std::uint64_t threads = std::uint64_t{config.blockDimX} * config.blockDimY * config.blockDimZ;
    const int shared_limit = max_dynamic_shared_bytes(handle, device);
    return within(config.gridDimX, limits::grid_x) && within(config.gridDimY, limits::grid_y) &&
           within(config.gridDimZ, limits::grid_z) && within(config.blockDimX, limits::block_x) &&
           within(config.blockDimY, limits::block_y) && within(config.blockDimZ, limits::block_z) &&
           threads <= handle.kernel->max_threads &&
           config.sharedMemBytes <= static_cast<unsigned>(shared_limit);
}

void check_required_block(const CUlaunchConfig& config, const program::Kernel& kernel) {
    const auto& [x, y, z] = kernel.required_block;
    if (x == 0 || kernel.required_block == std::array{config.blockDimX, config.blockDimY, config.blockDimZ})
        return;
    return refuse(
        CUDA_ERROR_INVALID_VALUE,
        "kernel '{}' requires blocks of ({}, {}, {}) threads (.reqntid, in CUDA C++ __block_size__), and was "
        "launched with ({}, {}, {}): launch it with that block",
        ptx::demangled(kernel.name), x, y, z, config.blockDimX, config.blockDimY, config.blockDimZ);
}

/// How the emulated device treats a launch attribute.
enum class Wish : std::uint8_t {
    granted,      ///< a hint, or an order that holds anyway
    cooperative,  ///< all blocks resident at once
    event,        ///< recorded by the launch
    refused,
};

Wish wish(const CUlaunchAttribute& attribute) noexcept {
    switch (attribute.id) {
        case CU_LAUNCH_ATTRIBUTE_IGNORE:
        case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
        case CU_LAUNCH_ATTRIBUTE_PRIORITY:
        case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION:  // an overlap is optional
        case CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
        case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN:
        case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
        case CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
            return Wish::granted;
        case CU_LAUNCH_ATTRIBUTE_COOPERATIVE:
            return attribute.value.cooperative == 0 ? Wish::granted : Wish::cooperative;
        case CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION: {
            if (architecture_limits().clusters) return Wish::granted;  // `cluster_of` reads it
            const auto& cluster = attribute.value.clusterDim;
            return cluster.x <= 1 && cluster.y <= 1 && cluster.z <= 1 ? Wish::granted : Wish::refused;
        }
        case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT:
        case CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT:
            return architecture_limits().clusters ? Wish::event : Wish::refused;
        default:
            return Wish::refused;
    }
}

/// The event that an attribute of `Wish::event` names. It marks the kernel's end, which is not earlier than the
/// attribute promises.
CUevent event_of(const CUlaunchAttribute& attribute) noexcept {
    return attribute.id == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT
               ? attribute.value.programmaticEvent.event
               : attribute.value.launchCompletionEvent.event;
}

void record_events(const CUlaunchConfig& config) {
    for (const CUlaunchAttribute& attribute : std::span(config.attrs, config.numAttrs)) {
        if (wish(attribute) == Wish::event) check(cuEventRecord(event_of(attribute), config.hStream));
    }
}

/// True if `attrs` is null exactly when there are no attributes. <cuda.h> leaves other combinations undefined, and they
/// are refused here.
bool are_there(const CUlaunchConfig& config) noexcept {
    return (config.attrs == nullptr) == (config.numAttrs == 0);
}

void check_config(const CUlaunchConfig& config, const KernelHandle& handle, int device) {
    require(fits(config, handle, device));
    check_required_block(config, *handle.kernel);
    require(are_there(config));
    for (const CUlaunchAttribute& attribute : std::span(config.attrs, config.numAttrs)) {
        switch (wish(attribute)) {
            case Wish::granted:
                break;
            case Wish::cooperative: {
                const auto block = static_cast<int>(config.blockDimX * config.blockDimY * config.blockDimZ);
                const std::uint64_t blocks =
                    std::uint64_t{config.gridDimX} * config.gridDimY * config.gridDimZ;
                const int fitting =
                    limits::multiprocessors * resident_blocks(handle, device, block, config.sharedMemBytes);
                require(blocks <= static_cast<std::uint64_t>(fitting),
                        CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE);
                break;
            }
            case Wish::event: {
                const auto event = object_of<Event>(event_of(attribute));
                require(!event->timing && event->shared == nullptr);
                break;
            }
            case Wish::refused:
                return refuse(CUDA_ERROR_NOT_SUPPORTED,
                              "the emulated device has no launch attribute {} (CUlaunchAttributeID)",
                              static_cast<int>(attribute.id));
        }
    }
    check(cluster_of(config, handle, device).error);
}

/// Copies the parameters into `buffer`, from one pointer per parameter or from the whole buffer in `extra`.
void pack(std::vector<std::byte>& buffer, const program::Kernel& kernel, void** parameters, void** extra) {
    buffer.resize(kernel.parameter_bytes + 7);  // for wide loads at the end that use few bytes
    if (kernel.parameters.empty()) return;
    if (parameters != nullptr) {
        for (std::size_t i = 0; i < kernel.parameters.size(); ++i) {
            require(parameters[i] != nullptr);
            std::memcpy(buffer.data() + kernel.parameters[i].offset, parameters[i],
                        kernel.parameters[i].bytes);
        }
        return;
    }
    require(extra != nullptr);
    const void* bytes = nullptr;
    std::size_t size = 0;
    for (void** entry = extra; *entry != CU_LAUNCH_PARAM_END; entry += 2) {
        if (*entry == CU_LAUNCH_PARAM_BUFFER_POINTER) bytes = entry[1];
        if (*entry == CU_LAUNCH_PARAM_BUFFER_SIZE) size = *static_cast<std::size_t*>(entry[1]);
    }
    require(bytes != nullptr && size >= kernel.parameter_bytes);
    std::memcpy(buffer.data(), bytes, kernel.parameter_bytes);
}

/// Refuses parameters that hold addresses of lost memory, before the kernel faults on them.
void refuse_lost_memory(const program::Kernel& kernel, std::span<const std::byte> values) {
    if (Process::get().resets() == 0) return;
    const memory::Heap& heap = Process::get().heap();
    for (std::size_t i = 0; i < kernel.parameters.size(); ++i) {
        const auto& parameter = kernel.parameters[i];
        for (std::size_t at = 0; at + sizeof(CUdeviceptr) <= parameter.bytes; at += sizeof(CUdeviceptr)) {
            CUdeviceptr address = 0;
            std::memcpy(&address, values.data() + parameter.offset + at, sizeof address);
            if (heap.is_lost(address))
                return refuse(CUDA_ERROR_CONTEXT_IS_DESTROYED,
                              "argument {} is {:#x}, {}: make the array again", i + 1, address,
                              heap.describe(address, 1));
        }
    }
}

/// Device memory for a cooperative grid while it runs. The context's later grids reuse it.
class Workspace {
  public:
    /// The address is 0 if there is not enough memory.
    explicit Workspace(Context& context) : context_(context) {
        {
            const std::lock_guard lock(context.mutex);
            if (!context.workspaces.empty()) {
                address = context.workspaces.back();
                context.workspaces.pop_back();
            }
        }
        memory::Heap& heap = Process::get().heap();
        constexpr auto kind = memory::Allocation::Kind::module_global;  // clients cannot free it
        if (address == 0) {
            address =
                heap.allocate(context.device, machine::workspace_bytes, kind, 256, context.memory.own().space)
                    .value_or(0);
            if (address == 0) return;
            Process::get().own(address, kind, context);
            heap.set_name(address, "a cooperative grid's workspace");
        }
        std::byte* bytes = heap.host(address, machine::workspace_bytes);
        std::memset(bytes, 0, machine::workspace_bytes);
        races::Detector::get().forget(address, machine::workspace_bytes);
    }
    ~Workspace() {
        if (address == 0) return;
        const std::lock_guard lock(context_.mutex);
        context_.workspaces.push_back(address);
    }
    Workspace(Workspace&&) = delete;

    memory::DeviceAddress address = 0;

  private:
    Context& context_;
};

/// A launch and everything it needs until it has run.
struct Job {
    std::shared_ptr<const KernelHandle> handle;
    std::shared_ptr<const Instance> instance;
    Context* context;
    machine::LaunchRequest asked;  ///< what the call determines; the rest is added when the launch runs
    std::vector<std::byte> parameters;
    bool cooperative = false;
    std::uint64_t stream = 0;  ///< the handle that the caller passed
    std::uint64_t site = 0;    ///< the place in the program that launched it
    std::vector<checks::ArrayArgument> arrays{};
    std::uint64_t resets = resets_before_call();

    std::string name() const { return report::demangled(handle->kernel->name); }

    checks::LaunchName launch_name() const {
        checks::LaunchName made{name(), stream, site, arrays};
        if ((Process::get().checks & checks::observing) == 0) return made;
        for (const program::Kernel::Parameter& each : handle->kernel->parameters) {
            std::uint64_t& value = made.arguments.emplace_back(0);
            if (each.bytes == sizeof value)
                std::memcpy(&value, parameters.data() + each.offset, sizeof value);
        }
        return made;
    }

    /// Runs the kernel. After a fault, nothing more runs in the context, as on a GPU.
    void operator()() const {
        Process& process = Process::get();
        if (!context->executes(resets) || !process.environment().executes) return;
        if (handle->library->unloaded) return fail_unloaded();
        machine::LaunchRequest request = asked;
        request.parameters = parameters.data();
        request.globals = instance->data();
        request.memory = &context->memory;
        request.shadow = &process.heap().shadow();
        request.images = &process.images();
        request.log = races::Running::log();
        heap::HeapOfLaunch kernel_heap(context->kernel_heap, name(), request.log != nullptr);
        request.heap = &kernel_heap;
        request.workers = process.environment().workers;
        request.print = print_of_client.load(std::memory_order_relaxed);
        request.set_condition = streams::Condition::set;
        std::optional<Workspace> workspace;
        if (cooperative) request.workspace = workspace.emplace(*context).address;
        if (cooperative && request.workspace == 0)
            return refuse("no device memory is left for the workspace of its cooperative grid");
        request.limits = process.environment().time_limits;
        request.cancelled = [this] { return is_cancelled(); };
        const checks::LaunchName launched = launch_name();
        machine::Observers observers = checks::make_observers(request, launched, process.checks);
        if (!observers.empty()) request.observers = &observers;
        try {
            const auto fault = machine::launch(request);
            if (request.log != nullptr) kernel_heap.forget_freed(*request.log);
            if (handle->library->unloaded) return fail_unloaded();
            if (fault) report(*fault);
        } catch (const std::exception& error) {  // e.g. no memory for the grid's registers, or no threads
            refuse(error.what());
        }
    }

    /// Called while the kernel runs; true if it must end. An interrupt drops all pending work, except under `eager`,
    /// where no other work waits for this kernel.
    bool is_cancelled() const {
        if (context->error.load(std::memory_order_relaxed) != CUDA_SUCCESS) return true;
        if (handle->library->unloaded.load(std::memory_order_relaxed)) return true;
        if (!interrupted()) return false;
        if (Process::get().scheduler().policy() != streams::Policy::eager) Process::get().drop_pending();
        return true;
    }

    /// A GPU would fetch instructions from memory that no longer holds the code.
    void fail_unloaded() const {
        context->fail(CUDA_ERROR_ILLEGAL_ADDRESS,
                      fmt::format("kernel '{}' was launched, and its code was unloaded (cuLibraryUnload, "
                                  "cuModuleUnload) before it had finished: an unload neither waits for "
                                  "launches nor keeps their code. Unload code when its launches have "
                                  "finished and the graphs that captured it are gone",
                                  name()),
                      FaultedLaunch{name(), {}, stream, site});
    }

    void report(const machine::Fault& fault) const {
        Process& process = Process::get();
        std::string text = report::describe(fault, process.heap()) + peer_advice(fault);
        const FaultedLaunch launch{name(), fault.lack, stream, site};
        if (fault.kind != machine::Fault::Kind::cancelled) {
            context->fail(static_cast<CUresult>(report::driver_code(fault.kind)), std::move(text), launch);
        } else if (context->error.load() == CUDA_SUCCESS) {
            process.set_report(std::move(text));
            OwnOperation::fail(*context, CUDA_ERROR_TIMEOUT);
        } else if (context->interrupted.exchange(
                       false)) {  // only the first kernel that is interrupted reports its place
            process.set_fault(std::move(text), launch);
        }
    }

    /// Reports that the launch did not happen. The context stays usable, as on a GPU.
    void refuse(const char* reason) const {
        Process::get().set_report(fmt::format("kernel '{}' could not run: {}", name(), reason));
        OwnOperation::fail(*context, CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
    }

    /// Advice for an access to memory of another device or context; empty for other faults.
    std::string peer_advice(const machine::Fault& fault) const {
        const auto* allocation = Process::get().heap().find(fault.address);
        if (fault.access_bytes == 0 || allocation == nullptr || context->memory.sees(*allocation)) return "";
        if (allocation->device == context->device) {
            return "\n  this is memory of another context of the device, and each context has an address "
                   "space of its own";
        }
        return fmt::format(
            "\n  this is memory of device {}{}, and the kernel runs on device {}: {} makes it accessible",
            allocation->device, allocation->access == nullptr ? "" : ", from a pool", context->device,
            allocation->access == nullptr ? "cuCtxEnablePeerAccess" : "cuMemPoolSetAccess");
    }
};

bool is_cooperative(const CUlaunchConfig& config) noexcept {
    return std::ranges::any_of(std::span(config.attrs, config.numAttrs),
                               [](const auto& each) { return wish(each) == Wish::cooperative; });
}

/// Checks the configuration of a launch that is not executed. Takes one lock and allocates nothing.
void pretend(const CUlaunchConfig& config, CUfunction function) {
    check(ready());
    const Context* context = current_context();
    return Process::get().handles().borrow([&](const auto& handles) {
        const auto* handle = handles.template get<KernelHandle>(function);
        require(handle != nullptr, CUDA_ERROR_INVALID_HANDLE);
        if (!is_default(config.hStream)) {
            const auto* stream = handles.template get<Stream>(config.hStream);
            require(stream != nullptr, CUDA_ERROR_INVALID_HANDLE);
            check(stream->context->error.load(std::memory_order_relaxed));
        }
        check_config(config, *handle, context->device);
        trace(BASCULE_EMULATED_LAUNCH, config.hStream, nullptr, 0, handle->kernel->name);
    });
}

/// Waits for the launched kernel and throws its error, for CUDA_LAUNCH_BLOCKING.
void wait_for_launch(const StreamTarget& target, const OwnOperation& operation) {
    const streams::DueDestructors due;
    target.context->graph.synchronize(*target.stream);
    check(operation.error());
    check(target.context->take_error());
}

/// Checks the launch and fills `job`.
void prepare(std::optional<Job>& job, const CUlaunchConfig& config, std::shared_ptr<KernelHandle> handle,
             Context& context, void** parameters, void** extra) {
    require(handle->context == nullptr || handle->context == &context, CUDA_ERROR_INVALID_HANDLE);
    check_config(config, *handle, context.device);
    load_kernel(*handle, context);
    auto instance = instance_of(*handle->library, context);
    if (instance == nullptr) throw Failed{no_room_for_variables(*handle->library, context)};

    const ClusterChoice cluster = cluster_of(config, *handle, context.device);
    machine::LaunchRequest request;
    request.kernel = handle->kernel;
    request.grid = {config.gridDimX, config.gridDimY, config.gridDimZ};
    request.block = {config.blockDimX, config.blockDimY, config.blockDimZ};
    request.cluster = cluster.size;
    request.explicit_cluster = cluster.is_explicit;
    request.dynamic_shared_bytes = config.sharedMemBytes;
    request.stack_bytes = context.limit(CU_LIMIT_STACK_SIZE, 0);  // the machine enforces a minimum
    job.emplace(Job{.handle = std::move(handle),
                    .instance = std::move(instance),
                    .context = &context,
                    .asked = std::move(request),
                    .parameters = {},
                    .cooperative = is_cooperative(config),
                    .stream = reinterpret_cast<std::uint64_t>(config.hStream)});
    pack(job->parameters, *job->handle->kernel, parameters, extra);
    refuse_lost_memory(*job->handle->kernel, job->parameters);
    if (job->handle->kernel->code->uses_heap)
        context.kernel_heap.open(context.limit(CU_LIMIT_MALLOC_HEAP_SIZE, heap::KernelHeap::default_limit));
}

/// The parameters that cuGraphKernelNodeGetParams returns.
NodeParameters describe(const CUlaunchConfig& config, const Job& job) {
    NodeParameters made(CU_GRAPH_NODE_TYPE_KERNEL);
    made.argument_bytes = job.parameters;
    for (const auto& parameter : job.handle->kernel->parameters)
        made.arguments.push_back(made.argument_bytes.data() + parameter.offset);
    made.attributes.assign(config.attrs, config.attrs + config.numAttrs);
    CUDA_KERNEL_NODE_PARAMS_v3& kernel = made.values.kernel;
    auto* handle = const_cast<KernelHandle*>(job.handle.get());
    if (handle->context != nullptr) {
        kernel.func = reinterpret_cast<CUfunction>(handle);
    } else {
        kernel.kern = reinterpret_cast<CUkernel>(handle);
    }
    kernel.ctx = reinterpret_cast<CUcontext>(job.context);
    kernel.gridDimX = config.gridDimX;
    kernel.gridDimY = config.gridDimY;
    kernel.gridDimZ = config.gridDimZ;
    kernel.blockDimX = config.blockDimX;
    kernel.blockDimY = config.blockDimY;
    kernel.blockDimZ = config.blockDimZ;
    kernel.sharedMemBytes = config.sharedMemBytes;
    kernel.kernelParams = made.arguments.empty() ? nullptr : made.arguments.data();
    return made;
}

void fill_node(streams::WorkNode& node, const CUlaunchConfig& config, Job job) {
    node.attributes = job.cooperative ? 1 : 0;
    const Context& context = *job.context;
    NodeParameters parameters = describe(config, job);
    make_node(node, context, std::move(parameters), std::move(job));
}

void launch(const CUlaunchConfig& config, CUfunction function, void** parameters, void** extra) {
    if (!Process::get().environment().executes && !streams::Captures::any()) return pretend(config, function);
    const std::uint64_t site = std::exchange(next_site(), 0);
    std::vector<checks::ArrayArgument> arrays = std::exchange(next_arrays(), {});
    check(ready());
    auto handle = object_of<KernelHandle>(function);
    const auto target = find_stream(config.hStream);
    Context& context = *target.context;
    const CaptureGate gate(target);
    std::optional<Job> job;
    prepare(job, config, std::move(handle), context, parameters, extra);
    job->site = site;
    job->arrays = std::move(arrays);
    trace(BASCULE_EMULATED_LAUNCH, config.hStream, nullptr, 0, job->handle->kernel->name);
    if (gate.captures()) {
        gate.add(fill_node, config, *std::move(job));
        return record_events(config);
    }
    const OwnOperation operation;
    context.graph.submit(*target.stream, *std::move(job));
    Process::get().kernel_enqueued();
    record_events(config);
    if (Process::get().environment().waits_for_launches) return wait_for_launch(target, operation);
    check(operation.error());
}

}  // namespace

void make_kernel_node(streams::WorkNode& node, const CUlaunchConfig& config, CUfunction function,
                      Context& context, void** parameters, void** extra) {
    auto handle = object_of<KernelHandle>(function);
    for (const CUlaunchAttribute& attribute : std::span(config.attrs, config.numAttrs))
        require(wish(attribute) != Wish::event, CUDA_ERROR_NOT_SUPPORTED);
    std::optional<Job> job;
    prepare(job, config, std::move(handle), context, parameters, extra);
    trace(BASCULE_EMULATED_LAUNCH, nullptr, nullptr, 0, job->handle->kernel->name);
    fill_node(node, config, *std::move(job));
}

EMULATED_STREAM_API(cuLaunchKernelEx, 11060, const CUlaunchConfig* config, CUfunction function,
                    void** parameters, void** extra) {
    require(config != nullptr);
    return launch(*config, function, parameters, extra);
}

EMULATED_STREAM_API(cuLaunchKernel, 4000, CUfunction function, unsigned int grid_x, unsigned int grid_y,
                    unsigned int grid_z, unsigned int block_x, unsigned int block_y, unsigned int block_z,
                    unsigned int shared_bytes, CUstream stream, void** parameters, void** extra) {
    const CUlaunchConfig config{grid_x,  grid_y,       grid_z, block_x, block_y,
                                block_z, shared_bytes, stream, nullptr, 0};
    return launch(config, function, parameters, extra);
}

EMULATED_STREAM_API(cuLaunchCooperativeKernel, 9000, CUfunction function, unsigned int grid_x,
                    unsigned int grid_y, unsigned int grid_z, unsigned int block_x, unsigned int block_y,
                    unsigned int block_z, unsigned int shared_bytes, CUstream stream, void** parameters) {
    CUlaunchAttribute cooperative = {};
    cooperative.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
    cooperative.value.cooperative = 1;
    const CUlaunchConfig config{grid_x,  grid_y,       grid_z, block_x,      block_y,
                                block_z, shared_bytes, stream, &cooperative, 1};
    return launch(config, function, parameters, nullptr);
}

}  // namespace emulated::driver

EMULATED_EXPORT void bascule_emulated_set_print(BasculeEmulatedPrint print) {
    emulated::driver::print_of_client.store(print);
}
