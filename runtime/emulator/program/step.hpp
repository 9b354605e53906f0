// The form between PTX and bytecode: instructions on virtual registers, for the register allocator.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "program/code.hpp"

namespace emulated::program {

/// One operand of a step.
struct Ref {
    /// `fixed` is a place in the register file.
    enum class Kind : std::uint8_t { none, virtual_register, fixed };
    Kind kind = Kind::none;
    std::uint32_t index = 0;
    bool operator==(const Ref&) const = default;
};

struct Step {
    Key key;
    std::vector<Ref> results, sources;  ///< in the machine's order: results, then sources
    std::vector<Ref> list;              ///< more results, then more sources, which are stored in Code::lists
    std::size_t listed_results = 0;
    std::vector<Code::Place>
        kept;  ///< registers that a frame saves; arguments or results of a call through a pointer
    std::int64_t immediate = 0;
    std::int32_t label = -1;  ///< branch target
    std::uint16_t bits = 0;
    bool partial = false;       ///< guarded: lanes that do not run keep the old result
    bool memory = false;        ///< needs an allocation cache
    std::int32_t shares = -1;   ///< memory: the earlier step whose addresses differ only in the displacement
    std::int32_t follows = -1;  ///< memory: the first step with the same pattern of addresses
    std::uint32_t extra = 0;    ///< copied to Instruction::extra
    std::uint32_t used_bytes =
        0;  ///< ld_used: one bit per byte of the access; atom: bytes of the vector that starts here
    std::uint16_t origin = 0;  ///< index into Code::origins
    Code::Line line;

    void list_results(std::vector<Ref> given) {
        listed_results = given.size();
        list = std::move(given);
    }
    /// Visits the virtual registers that the step reads, by index.
    template <class Visit>
    void each_use(const Visit& visit) const {
        each_register(sources, visit);
        each_register(std::span(list).subspan(listed_results), visit);
    }
    /// Visits the virtual registers that the step writes.
    template <class Visit>
    void each_result(const Visit& visit) const {
        each_register(results, visit);
        each_register(std::span(list).first(listed_results), visit);
    }

  private:
    template <class Visit>
    static void each_register(std::span<const Ref> refs, const Visit& visit) {
        for (const Ref& ref : refs) {
            if (ref.kind == Ref::Kind::virtual_register) visit(ref.index);
        }
    }
};

/// True for a load or store that looks for a pattern of the lanes' addresses.
bool is_access(const Step& step) noexcept;

/// A function during translation.
struct Body {
    std::vector<Step> steps;
    std::vector<std::uint8_t> register_bytes;  ///< of each virtual register: 2, 4 or 8; 0 for a predicate
    std::vector<std::size_t> labels;           ///< by label: the step that it precedes
    std::vector<bool> unshared;  ///< by register: no other may have its place; empty: false for all
};

/// The result of allocate_registers, which assigns a place to every virtual register. Values that are never live at the
/// same time share places, but only within one width, so that an elementwise instruction may read and write the same
/// place. Values that are live across a call that saves its frame are added to the frame.
struct Allocated {
    std::uint64_t bytes = 0;       ///< used from `base`; if this exceeds 32 bits, the places are invalid
    std::uint32_t registers = 0;   ///< maximum number of live 32-bit registers
    bool reads_unwritten = false;  ///< a register may be read before it is written
};
Allocated allocate_registers(Body& body, std::uint32_t base, std::vector<std::uint32_t>& place);

// Optimisations of steps that use what is known before a launch (simplify.cpp).

class Layout;

/// Replaces registers that are written once, with a kernel parameter, a constant or a special register, by the place of
/// that value.
void simplify(Body& body, Layout& layout);

/// Sets the origins of accesses (origins.cpp).
void trace_origins(Body& body, const Layout& layout);

/// Lets loads and stores add to their addresses a value that all lanes share, such as the start of an array.
void join_addresses(Body& body, const Layout& layout);

/// Lets loads and stores reuse the address check of an earlier one in the same basic block that differs only in the
/// displacement.
void share_addresses(Body& body);

/// Lets copies of accumulators of wgmma receive results that are still outstanding, and gives accumulators and copies
/// places that no other register shares (Body::unshared).
void follow_sums(Body& body);

/// Turns forward branches over straight-line steps into guards of these steps, so that lanes need not diverge and rejoin.
/// Returns the guard by the step before which it ends. Called after register allocation, because liveness analysis knows
/// only branches.
std::map<std::size_t, std::size_t> guard_ifs(Body& body);

}  // namespace emulated::program
