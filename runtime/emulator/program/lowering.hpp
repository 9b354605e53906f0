// Lowers PTX instructions to steps, one function at a time. lowering.cpp decides which method lowers which family.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "program/code.hpp"
#include "program/functions.hpp"
#include "program/loaded_module.hpp"
#include "program/step.hpp"
#include "program/table/operations.hpp"
#include "program/variants.hpp"

namespace emulated::program {

using OperandKind = ptx::Operand::Kind;

/// A reason why this kernel cannot run here. Thrown by the lowering of one instruction, and collected.
struct Refused {
    Code::Line line;
    std::string reason;
    const ptx::Function* function = nullptr;  ///< the function of that line
};

class Lowering {
  public:
    Lowering(Functions& functions, std::size_t index, const std::map<std::uint32_t, std::uint32_t>& files,
             const std::vector<Kernel::Parameter>& parameters);
    /// Adds refusals to `refused`; if there are any, the body must not be used.
    Body run(std::vector<Refused>& refused);

  private:
    // lowering.cpp: the steps common to all instructions
    void instruction(const ptx::Instruction& instruction);
    void dispatch(const ptx::Instruction& instruction, const Opcode& opcode);
    /// Lowers an instruction by its row's letters (program/table/operations.hpp), which describe most families completely.
    Step& by_letters(const ptx::Instruction& instruction, const Opcode& opcode, std::string_view letters);
    void letters(const ptx::Instruction& instruction, const Opcode& opcode);
    void branch(const ptx::Instruction& instruction, const Opcode& opcode);
    void leave(const ptx::Instruction& instruction, const Opcode& opcode);
    void indexed_branch(const ptx::Instruction& instruction, const Opcode& opcode);
    std::int32_t new_label();
    void stand(std::int32_t label);

    // lower_values.cpp: movement, comparison, conversion
    void move(const ptx::Instruction& instruction, const Opcode& opcode);
    void compare(const ptx::Instruction& instruction, const Opcode& opcode);
    void compare_packed(const ptx::Instruction& instruction, const Opcode& opcode);
    std::array<Ref, 2> unpacked(const ptx::Operand& operand, Type type);
    Ref compared(const ptx::Instruction& instruction, const Opcode& opcode, Type type, Ref a, Ref b);
    void compare_to_value(const ptx::Instruction& instruction, const Opcode& opcode);
    void convert(const ptx::Instruction& instruction, const Opcode& opcode);
    void convert_scalar(Ref result, unsigned result_bytes, Ref source, unsigned source_bytes,
                        const Opcode& opcode);
    void carry(const ptx::Instruction& instruction, const Opcode& opcode);
    void lookup3(const ptx::Instruction& instruction, const Opcode& opcode);

    // lower_small.cpp: conversions of small formats
    void convert_small(const ptx::Instruction& instruction, const Opcode& opcode);

    // lower_video.cpp
    void scalar_video(const ptx::Instruction& instruction, const Opcode& opcode);
    void vector_video(const ptx::Instruction& instruction, const Opcode& opcode);
    Ref selected(const ptx::Operand& operand);
    Step& emit_video(const Opcode& opcode, const ptx::Operand& to, std::vector<Ref> sources);

    // lower_memory.cpp: memory, votes and barriers
    struct Address {
        Ref base;
        std::int64_t offset = 0;
        bool narrow = false;
    };
    /// The registers of a load or store.
    struct Parts {
        std::vector<ptx::Operand> operands;
        unsigned lanes = 0, bytes = 0;  ///< number of values, and bytes of each in memory
        unsigned wide = 0;              ///< bytes of each register
    };
    Parts parts_of(const ptx::Operand& given, const ptx::Instruction& instruction, const Opcode& opcode,
                   const char* role);
    void load(const ptx::Instruction& instruction, const Opcode& opcode);
    void store(const ptx::Instruction& instruction, const Opcode& opcode);
    void atomic(const ptx::Instruction& instruction, const Opcode& opcode);
    void atomic_vector(const ptx::Instruction& instruction, const Opcode& opcode);
    void atomic_wide(const ptx::Instruction& instruction, const Opcode& opcode);
    void discard(const ptx::Instruction& instruction, const Opcode& opcode);
    void create_policy(const ptx::Instruction& instruction, const Opcode& opcode);
    void take_policy(const ptx::Instruction& instruction, const Opcode& opcode, std::size_t operands);
    void vote(const ptx::Instruction& instruction, const Opcode& opcode);
    void barrier(const ptx::Instruction& instruction, const Opcode& opcode);
    void reducing_barrier(const ptx::Instruction& instruction, const Opcode& opcode);
    /// `spaces` are those that the instruction names for its address.
    Address address(const ptx::Operand& operand, const FlagSet& spaces = {});
    ptx::Space space_of(const ptx::Operand& operand) const;
    void require_space(const ptx::Operand& base, const FlagSet& spaces) const;
    Step& access(Step& step, const Address& where);

    // lower_tensor.cpp: matrices of a warp
    std::vector<ptx::Operand> registers_of_matrix(const ptx::Operand& given, std::size_t count,
                                                  const char* which);
    void multiply_matrices(const ptx::Instruction& instruction, const Opcode& opcode);
    void move_matrix(const ptx::Instruction& instruction, const Opcode& opcode);
    void move_rows(const ptx::Instruction& instruction, const Opcode& opcode);

    // lower_warpgroup.cpp: matrices of a warpgroup, and the registers of its warps
    void multiply_warpgroup(const ptx::Instruction& instruction, const Opcode& opcode);
    void order_warpgroup(const ptx::Instruction& instruction, const Opcode& opcode);
    void set_registers(const ptx::Instruction& instruction, const Opcode& opcode);

    // lower_async.cpp: asynchronous copies, barriers in shared memory, clusters
    Ref whole_address(const ptx::Operand& given, const FlagSet& spaces);
    std::size_t count_without_policy(const ptx::Instruction& instruction, const Opcode& opcode);
    void copy_async(const ptx::Instruction& instruction, const Opcode& opcode);
    void copy_group(const ptx::Instruction& instruction, const Opcode& opcode);
    void bulk_copy(const ptx::Instruction& instruction, const Opcode& opcode);
    void write_remotely(const ptx::Instruction& instruction, const Opcode& opcode);
    void mbarrier(const ptx::Instruction& instruction, const Opcode& opcode);
    void cluster_barrier(const ptx::Instruction& instruction, const Opcode& opcode);
    void elect(const ptx::Instruction& instruction, const Opcode& opcode);
    void require_cluster_address(const ptx::Operand& given, const Opcode& opcode, unsigned bytes);

    // lower_tensor_copies.cpp: tiles of tensors, tensor maps
    Ref tensor_map(const ptx::Operand& given, std::size_t parts);
    void copy_tensor(const ptx::Instruction& instruction, const Opcode& opcode);
    void replace_in_map(const ptx::Instruction& instruction, const Opcode& opcode);
    void copy_tensor_map(const ptx::Instruction& instruction, const Opcode& opcode);
    void fence_tensor_map(const ptx::Instruction& instruction, const Opcode& opcode);
    void require_map_bytes(const ptx::Operand& given) const;

    // lower_textures.cpp: textures and surfaces
    ImageAccess image_access(const ptx::Instruction& instruction, const Opcode& opcode) const;
    Ref image_handle(const ptx::Operand& address);
    void append_coordinates(const ptx::Operand& given, unsigned count, const Opcode& opcode,
                            std::vector<Ref>& into);
    void sample(const ptx::Instruction& instruction, const Opcode& opcode);
    void surface(const ptx::Instruction& instruction, const Opcode& opcode);
    void query(const ptx::Instruction& instruction, const Opcode& opcode);

    // lower_calls.cpp: calls, and frames of re-entrant functions
    void enter_function();
    void enter_frame(const std::set<std::int32_t>& copied);
    std::set<std::int32_t> parameters_with_addresses() const;
    void copy_parameter(std::int32_t parameter);
    void leave_function();
    void stack(const ptx::Instruction& instruction, const Opcode& opcode);
    void keep_frame(Operation operation);
    const ptx::Variable* argument_variable(const ptx::Operand& operand) const;
    bool is_passed(std::int32_t variable) const;
    bool is_returned(std::int32_t variable) const;
    void require_inside(const ptx::Variable& variable, std::uint64_t offset, std::uint64_t bytes,
                        unsigned alignment) const;
    std::uint32_t argument_place(std::int32_t variable);
    void require_prototype(const ptx::Function& callee, const std::vector<std::int32_t>& formals,
                           const ptx::Operand* given) const;
    std::vector<Code::Place> arguments_of(const ptx::Operand* list);
    void call(const ptx::Instruction& instruction, const Opcode& opcode);
    void call_through_pointer(const ptx::Operand* results, const ptx::Operand& target,
                              const ptx::Operand* arguments);
    void call_external(std::string_view name, const ptx::Operand* results, const ptx::Operand* arguments);

    // lower_operands.cpp: operands
    [[noreturn]] void refuse(const std::string& reason) const;
    template <class First, class... Others>
    [[noreturn]] void refuse(fmt::format_string<First, Others...> reason, First&& first,
                             Others&&... others) const {
        refuse(fmt::format(reason, std::forward<First>(first), std::forward<Others>(others)...));
    }
    [[noreturn]] void unsupported(const ptx::Instruction& instruction) const;
    void expect_operands(const ptx::Instruction& instruction, std::size_t wanted) const;
    void expect_operands(const ptx::Instruction& instruction, std::size_t count, std::size_t least,
                         std::size_t most) const;
    const ptx::Operand& operand(const ptx::Instruction& instruction, std::size_t index) const;
    unsigned width(const ptx::Operand& operand) const;  ///< of a register in bytes; 0 for a predicate
    void require_register_of(const ptx::Operand& operand, Type type, unsigned bytes) const;
    void require_alike(const std::vector<ptx::Operand>& elements) const;
    /// The operand as a register or constant of the type. `bytes`: the size of the register, for instructions that
    /// allow registers wider than the type; 0: the size of the type.
    Ref source(const ptx::Operand& operand, Type type, unsigned bytes = 0);
    void require_special(const ptx::Operand& operand, Type type, unsigned bytes = 0) const;
    void require_barrier(const ptx::Operand& number, const ptx::Operand* threads) const;
    /// Like `source`, and also accepts a special register, as mov and cvt do.
    Ref source_or_special(const ptx::Operand& operand, Type type, unsigned bytes = 0);
    Ref predicate(const ptx::Operand& operand);
    Ref result(const ptx::Operand& operand, Type type, unsigned bytes = 0);
    Ref result_or_sink(const ptx::Operand& operand, Type type, unsigned bytes = 0);
    Ref register_of(const ptx::Operand& operand) const;
    Ref symbol_address(const ptx::Operand& operand, unsigned bytes, std::int64_t addend);
    Ref frame_address(std::uint64_t offset, unsigned bytes);
    Ref special(const ptx::Operand& operand, unsigned bytes);
    Ref temporary(unsigned bytes);
    /// Both halves of a 128-bit register as a vector, the lower one first.
    ptx::Operand halves_of(const ptx::Operand& operand) const;
    bool is_wide(const ptx::Operand& operand) const;
    Step& emit(const Key& key, std::vector<Ref> results, std::vector<Ref> sources);

    Functions& functions_;
    std::size_t index_;
    const ptx::Function& function_;
    const std::map<std::uint32_t, std::uint32_t>& files_;
    const std::vector<Kernel::Parameter>& parameters_;
    Body body_;
    Code::Line line_;
    std::map<std::int32_t, std::int32_t>
        halves_;  ///< by 128-bit register: the lower half; the upper half is the next register
    Ref carry_;   ///< the .cc flag, if anything uses it
    /// Addresses of local variables by variable index, relative to `frame_` if there is one.
    std::map<std::int32_t, std::uint64_t> addresses_;
    bool reenters_ = false;          ///< the function can be called again before it returns
    std::uint64_t frame_bytes_ = 0;  ///< size of the local variables on the lane's stack
    Ref frame_;                      ///< the address of that frame
    Ref saved_stack_;                ///< with alloca: the end of the stack before it
    std::map<std::pair<std::string_view, std::uint32_t>, std::uint32_t> places_;  ///< of call arguments
};

inline const FlagSet every_space{Flag::global, Flag::constant, Flag::shared,
                                 Flag::local,  Flag::param,    Flag::shared_cluster};
/// The register type of a matrix; small elements are packed.
Type register_of_matrix(Type element) noexcept;
/// The elements of a vector, or the operand itself.
std::vector<ptx::Operand> elements_of(const ptx::Operand& operand);

/// How an access or a fence orders others: Instruction::acquires, releases and in_block.
std::uint16_t order_of(const Opcode& opcode);
/// The type that represents all types with the same handler: `.b32` and `.s32` add like `.u32`.
Type canonical(Operation operation, Type type, const FlagSet& flags) noexcept;
/// The handler key of an instruction that is determined by types and modifiers.
Key key_of(const Opcode& opcode) noexcept;
/// The handler key of an instruction whose handlers are the same for all types.
Key untyped_key(const Opcode& opcode) noexcept;
/// The result of `key_of` for an opcode of this row.
Key machine_key(const Row& row, Type type, Type second, const FlagSet& flags) noexcept;
Type unsigned_of(unsigned bytes) noexcept;
Type twice_as_wide(Type type) noexcept;
Type register_type(unsigned bytes) noexcept;  ///< b16, b32 or b64

}  // namespace emulated::program
