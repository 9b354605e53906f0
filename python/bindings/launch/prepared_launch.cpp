// A call, from top to bottom. runtime/kernels/launch.cpp continues after `enqueue`.
#include "launch/prepared_launch.hpp"

#include <mutex>
#include <utility>
#include <vector>

#include <bascule/runtime/driver/driver.hpp>
#include <bascule/runtime/driver/emulated_device.hpp>
#include <bascule/runtime/faults/failure_details.hpp>
#include <bascule/runtime/kernels/library.hpp>
#include <bascule/runtime/streams/stream_capture.hpp>
#include <bascule/runtime/trace/recorder.hpp>

#include "context/stream_object.hpp"
#include "launch/arguments.hpp"
#include "support/errors.hpp"
#include "support/gil.hpp"
#include "support/stack_room.hpp"
#include "support/toolkit.hpp"

namespace bascule::python {
namespace {

/// Reads and checks each argument in one pass, for a kernel that is one function.
void read_in_order(Reading& reading, ArgumentPack& pack, const CallArguments& arguments) {
    const Signature& signature = pack.signature();
    if (arguments.keywords == nullptr) [[likely]] {
        ArgumentPack::check_count(signature, arguments.count());
        return read_arguments(reading, pack, arguments.objects);
    }
    Slots<PyObject*> slots(signature.parameters.size());
    order_arguments(signature, arguments, slots.span());
    read_arguments(reading, pack, slots.span().data());
}

LaunchTarget make_target(const Kernel& function, const LaunchPlan& plan, Device device) {
    const LoadedKernel& loaded = load(function, device, plan.stream);
    return without_gil([&]() -> LaunchTarget {
        return {loaded, device,
                plan.work.empty() ? plan.config
                                  : function.configuration_for(device, plan.work, plan.shared_bytes)};
    });
}

/// Gives the emulated device the arrays that the launch passes as pointers.
void tell_arrays(const Signature& signature, std::span<const ArgumentValue> values) {
    std::vector<BasculeEmulatedArray> arrays;
    for (std::uint32_t i = 0; i < values.size(); ++i) {
        const auto* view = std::get_if<ArrayView>(&values[i]);
        const Parameter& parameter = signature.parameters[i];
        if (view == nullptr || parameter.type.kind != ParameterType::Kind::pointer) continue;
        arrays.push_back({i, view->dtype.itemsize, view->pointer, view->size * view->dtype.itemsize,
                          parameter.name.c_str()});
    }
    if (const EmulatedFunctions* emulated = Driver::get().emulated_functions())
        emulated->next_arrays(arrays.data(), arrays.size());
}

[[gnu::cold, gnu::noinline]] void launch_watched(LaunchState& state, const CallArguments& arguments) {
    std::optional<ReadArguments> seen;
    if (watches(Watch::arrays)) seen.emplace(arguments.count());
    std::optional<PreparedLaunch> prepared;
    {
        const TracedCall call(CallKind::read, [&] { return "read arguments of " + state.kernel.name(); });
        prepared.emplace(state, arguments, seen ? &*seen : nullptr);
    }
    if (!state.launches) return;
    if (seen) tell_arrays(prepared->pack().signature(), seen->values.span());
    const StreamRef stream = prepared->stream();
    prepared->enqueue(stream, prepared->owners().transfer());
}

}  // namespace

void launch(LaunchState& state, const CallArguments& arguments) {
    if (watches_anything()) [[unlikely]]
        return launch_watched(state, arguments);
    PreparedLaunch prepared(state, arguments);
    if (!state.launches) return;
    const StreamRef stream = prepared.stream();
    prepared.enqueue(stream, prepared.owners().transfer());
}

PreparedLaunch::PreparedLaunch(LaunchState& state, const CallArguments& arguments, ReadArguments* seen)
    : state_(state), resolved_(state.resolve(undecided_)), device_(resolved_.device) {
    const LaunchOptions* options = state.plan.options.get();
    const StreamRef* stream = state.plan.stream ? &*state.plan.stream : nullptr;
    if (stream == nullptr && anything_entered()) [[unlikely]] {
        const LaunchStart start = start_of(state.plan);
        device_ = start.device;
        if (start.stream) stream = &entered_.emplace(*start.stream);
    }
    Reading reading(device_, owners_, stream, options);
    require_stack(&reading);  // an argument's own code may launch with the argument
    if (resolved_.loaded != nullptr && seen == nullptr) [[likely]] {
        pack_.emplace(resolved_.loaded->image->signature);
        if (options != nullptr) prepare_pack(*pack_, options);
        read_in_order(reading, *pack_, arguments);
        device_ = reading.home.device;
    } else {
        read_and_choose(reading, arguments, seen);
    }
    if (pack_->has_claims()) {  // the compiler may have to be asked
        const GilReleased released;
        function().convert_structures(*pack_, device_);
    }
    if (options != nullptr) add_named_streams(*pack_, options, device_);
    if (resolved_.target && device_ == resolved_.device) [[likely]] {
        target_ = &*resolved_.target;
    } else {
        find_other_target();
        if (undecided_ != nullptr) state.resolve_on(device_);  // the next launch finds the device decided
    }
}

/// Reads all arguments before it checks them: for a template or overloads, whose function the arguments choose; if the
/// arrays choose the device; and if the caller wants the values.
void PreparedLaunch::read_and_choose(Reading& reading, const CallArguments& arguments, ReadArguments* seen) {
    std::optional<ReadArguments> own;
    ReadArguments& read = seen != nullptr ? *seen : own.emplace(arguments.count());
    const Kernel& kernel = resolved_.function;
    std::optional<KernelImage> compiled;  // not loaded, because the device is not known yet
    if (resolved_.loaded == nullptr && kernel.is_function()) compiled = compile(kernel, device_);
    const Signature& declared = resolved_.loaded != nullptr ? resolved_.loaded->image->signature
                                : compiled                  ? compiled->signature
                                                            : kernel.declared(arguments.count());
    const std::span objects = read.objects.span();
    const std::span values = read.values.span();
    order_arguments(declared, arguments, objects);
    for (std::size_t i = 0; i < values.size(); ++i) {
        values[i] = read_argument(reading, objects[i], static_cast<int>(i), declared.parameters[i]);
    }
    device_ = reading.home.device;
    if (!kernel.is_function()) chosen_ = choose_function(kernel, values, device_);
    pack_.emplace(load(function(), device_, state_.plan.stream).image->signature);
    prepare_pack(*pack_, state_.plan.options.get());
    const Signature& signature = pack_->signature();
    ArgumentPack::check_count(signature, values.size());
    check_keywords(declared, signature, arguments);
    for (std::size_t i = 0; i < values.size(); ++i) {
        if (!kernel.is_function()) check_chosen(objects[i], static_cast<int>(i), signature.parameters[i]);
        pack_->set(static_cast<int>(i), values[i]);
        if (objects[i] == Py_None) note_null_argument(signature, static_cast<int>(i));
    }
}

/// Loads the kernel for the arrays' device, and makes its target, if the first call has not done so.
void PreparedLaunch::find_other_target() {
    if (!state_.launches) {
        load(function(), device_, state_.plan.stream);
        return;
    }
    own_target_.emplace(make_target(function(), state_.plan, device_));
    target_ = &*own_target_;
}

[[gnu::noinline]] StreamRef PreparedLaunch::stream_among_entered() const {
    const std::optional<StreamRef> current = current_for(state_.plan, device_);
    return choose_stream(state_.plan.stream, current, pack_->common_stream(), device_);
}

const ResolvedLaunch& LaunchState::resolve_now(std::unique_ptr<ResolvedLaunch>& undecided) {
    const LaunchStart start = start_of(plan);
    if (start.stream || start.device.in_use() || Device::count() == 1) return resolve_on(start.device);
    undecided = std::make_unique<ResolvedLaunch>(
        ResolvedLaunch{start.device, resolve_function(kernel, start.device)});
    return *undecided;
}

const ResolvedLaunch& LaunchState::resolve_on(Device device) {
    ResolvedLaunch found{device, resolve_function(kernel, device)};
    if (found.function.is_function()) {
        found.loaded = &load(found.function, device, plan.stream);
        if (plan.launches()) found.target = make_target(found.function, plan, device);
    }
    const std::lock_guard lock(mutex_);
    if (!resolved_) resolved_.emplace(std::move(found));
    is_resolved_.store(true, std::memory_order_release);
    return *resolved_;
}

py::object LaunchState::stream_object() const {
    if (plan.stream_object || !plan.stream) return plan.stream_object;
    return py::cast(StreamObject{plan.lent_stream.lock(), *plan.stream, py::none()});
}

Kernel resolve_function(const Kernel& kernel, Device device) {
    if (kernel.is_resolved()) return kernel;
    prepare_toolkit();
    const GilReleased released;
    return kernel.resolve_function(device);
}

Kernel choose_function(const Kernel& kernel, std::span<const ArgumentValue> values, Device device) {
    if (auto known = kernel.known_for_arguments(values)) return *known;
    prepare_toolkit();
    const GilReleased released;
    return kernel.for_arguments(values, device);
}

KernelImage compile(const Kernel& function, Device device) {
    prepare_toolkit();
    const Arch arch = function.module().options().arch.value_or(device.arch());
    const GilReleased released;
    return function.image(arch);
}

const LoadedKernel& load(const Kernel& function, Device device, std::optional<StreamRef> stream) {
    if (const LoadedKernel* hit = function.existing(device)) return *hit;
    if (!stream) stream = current_stream(device);
    without_gil([&] { require_loadable(stream, function.name()); });
    prepare_toolkit();
    const LoadedKernel* const loaded = without_gil([&] { return &function.loaded(device); });
    issue_compile_warnings(loaded->library->image(), function.module().source());
    return *loaded;
}

}  // namespace bascule::python
