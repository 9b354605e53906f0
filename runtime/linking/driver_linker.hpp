// The driver's linker, for machines without nvJitLink and for the emulated device.
#pragma once

#include <bascule/jit/link/linker.hpp>
#include <bascule/runtime/driver/device.hpp>

namespace bascule {

/// Links for one device. The emulated device links PTX to PTX.
class DriverLinker final : public Linker {
  public:
    explicit DriverLinker(Device device) : device_(device) {}

    std::string name() const override;
    std::string identity() const override;
    std::string link(std::span<const Code> codes, Arch arch, const CompileOptions& options) const override;

  private:
    Device device_;
};

}  // namespace bascule
