// Between PTX and bytecode: instructions over virtual registers, as the allocator wants them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "program/code.hpp"

namespace emulated::program {

/// One operand of a step.
struct Ref {
    /// fixed: a place in the register file
    enum class Kind : std::uint8_t { none, virtual_register, fixed };
    Kind kind = Kind::none;
    std::uint32_t index = 0;
    bool operator==(const Ref&) const = default;
};

struct Step {
    Key key;
    std::vector<Ref> results, sources;  ///< in the machine's order: results, then sources
    std::vector<Ref> list;              ///< more results, then more sources: these go to Code::lists
    std::size_t listed_results = 0;
    std::vector<Code::Place> kept;  ///< of frames and calls through pointers
    std::int64_t immediate = 0;
    std::int32_t label = -1;  ///< branch target
    std::uint16_t bits = 0;
    bool partial = false;       ///< guarded: what it does not write stays
    bool memory = false;        ///< wants an allocation cache
    std::int32_t shares = -1;   ///< memory: the earlier step with the same addresses, up to the displacement
    std::int32_t follows = -1;  ///< memory: the first step whose addresses lie to each other as this one's
    std::uint32_t extra = 0;    ///< goes to Instruction::extra
    std::uint32_t used_bytes =
        0;  ///< ld_used: a bit for each byte of the access; atom: of the vector it begins
    Code::Line line;

    void list_results(std::vector<Ref> given) {
        listed_results = given.size();
        list = std::move(given);
    }
    /// Visits the virtual registers that it reads, by index.
    template <class Visit>
    void each_use(const Visit& visit) const {
        each_register(sources, visit);
        each_register(std::span(list).subspan(listed_results), visit);
    }
    /// The same of those that it writes.
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

/// A load or a store, which looks for a pattern of the lanes' addresses.
bool is_access(const Step& step) noexcept;

/// One function on its way.
struct Body {
    std::vector<Step> steps;
    std::vector<std::uint8_t> register_bytes;  ///< of each virtual register: 2, 4, 8; 0 means a predicate
    std::vector<std::size_t> labels;           ///< by label index: the step it stands before
};

/// Gives every virtual register its place; values that never live at the same time share one. Three kinds of
/// widths never overlap, so an elementwise instruction may read and write the same place. What lives across a
/// call that saves its frame is added to the frame.
struct Allocated {
    std::uint64_t bytes = 0;      ///< used from `base`; the places are wrong where 32 bits do not hold it
    std::uint32_t registers = 0;  ///< of 32 bits that hold a value at once, at most
};
Allocated allocate_registers(Body& body, std::uint32_t base, std::vector<std::uint32_t>& place);

/// True for steps after which the next one is not reached by falling through.
bool ends_flow(const Step& step) noexcept;

}  // namespace emulated::program
