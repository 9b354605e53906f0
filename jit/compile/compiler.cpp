#include <mutex>
#include <utility>

#include <bascule/jit/compile/compilation.hpp>
#include <bascule/jit/compile/compiler.hpp>
#include <bascule/jit/compile/view_probe.hpp>

namespace bascule {

struct Compiler::State {
    std::mutex mutex;
    ToolkitLocation location;
    DriverLimit limit;
    std::shared_ptr<const Nvrtc> nvrtc;
};

Compiler::Compiler(ToolkitLocation location) : state_(std::make_unique<State>()) {
    state_->location = std::move(location);
}
Compiler::~Compiler() = default;

Image Compiler::compile(const Program& program, const Nvrtc& nvrtc, const HeaderManifest* reached) {
    Image image = compile_once(program, nvrtc, reached);
    if (program.purpose == Program::Purpose::code) read_view_layouts(image, program, nvrtc);
    return image;
}

std::shared_ptr<const Nvrtc> Compiler::nvrtc() {
    const std::lock_guard lock(state_->mutex);
    if (state_->nvrtc == nullptr)
        state_->nvrtc = std::make_shared<const Nvrtc>(state_->location, state_->limit);
    return state_->nvrtc;
}

void Compiler::set_limit(const DriverLimit& limit) {
    const std::lock_guard lock(state_->mutex);
    if (limit == state_->limit) return;
    state_->limit = limit;
    state_->nvrtc = nullptr;
}

void Compiler::set_location(ToolkitLocation location) {
    const std::lock_guard lock(state_->mutex);
    if (location == state_->location) return;
    state_->location = std::move(location);
    state_->nvrtc = nullptr;
}

}  // namespace bascule
