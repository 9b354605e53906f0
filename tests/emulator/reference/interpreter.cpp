// The interpreter of one thread.
#include "reference/interpreter.hpp"

#include <bit>
#include <cstring>
#include <optional>
#include <stdexcept>
#include <string>

#include "ptx/module.hpp"
#include "reference/evaluate.hpp"

namespace reference {
namespace {

namespace ptx = emulated::ptx;
using Kind = ptx::Operand::Kind;

constexpr std::uint64_t local_base = 0x4000'0000'0000, local_stride = 0x100'0000;
constexpr std::size_t most_steps = 1'000'000;

[[noreturn]] void fail(const ptx::Instruction& at, const std::string& what) {
    throw std::runtime_error("line " + std::to_string(at.line) + ", " + std::string(at.opcode) + ": " + what);
}

// An instruction with everything that is known before it runs.
struct Statement {
    const ptx::Instruction* text;
    Opcode opcode;
    const Family* family;
    Signature signature;
};

struct Function {
    const ptx::Function* text;
    std::vector<Statement> body;
};

struct Frame {
    const Function* function;
    std::size_t next = 0;
    std::vector<Bits> registers;
    std::vector<std::vector<std::byte>> variables;
    bool carry = false;
    const ptx::Instruction* call = nullptr;  ///< the caller's call instruction
};

Frame frame_of(const Function& function) {
    Frame frame{&function, 0, std::vector<Bits>(function.text->registers.size(), 0), {}, false, nullptr};
    for (const ptx::Variable& variable : function.text->variables)
        frame.variables.emplace_back(variable.bytes);
    return frame;
}

struct Call {
    const ptx::Operand* results = nullptr;
    const ptx::Operand* arguments = nullptr;
    std::string_view target;
};
Call call_of(const ptx::Instruction& instruction) {
    Call call;
    for (const ptx::Operand& operand : instruction.operands) {
        if (operand.kind == Kind::list)
            (call.target.empty() ? call.results : call.arguments) = &operand;
        else
            call.target = operand.name;
    }
    return call;
}

}  // namespace

struct Interpreter::Program {
    ptx::Module module;
    std::vector<Function> functions;
    const Function* kernel = nullptr;
};

namespace {

// One thread of one launch.
class Thread {
  public:
    Thread(const std::vector<Function>& functions, const Function& kernel, const Interpreter::Launch& launch,
           std::uint32_t block, std::uint32_t thread)
        : functions_(functions), launch_(launch), block_(block), thread_(thread) {
        frames_.push_back(frame_of(kernel));
        std::size_t at = 0;
        for (const std::int32_t index : kernel.text->parameters) {
            const ptx::Variable& formal = kernel.text->variables[static_cast<std::size_t>(index)];
            at = (at + formal.alignment - 1) / formal.alignment * formal.alignment;
            std::memcpy(frames_[0].variables[static_cast<std::size_t>(index)].data(),
                        launch.parameters.data() + at, formal.bytes);
            at += formal.bytes;
        }
    }

    void run() {
        for (std::size_t steps = 0; !frames_.empty(); ++steps) {
            if (steps == most_steps) throw std::runtime_error("this thread never ends");
            Frame& frame = frames_.back();
            if (frame.next == frame.function->body.size())
                leave();
            else
                step(frame.function->body[frame.next++]);
        }
    }

  private:
    Frame& frame() { return frames_.back(); }

    void step(const Statement& statement) {
        const ptx::Instruction& text = *statement.text;
        if (text.guard >= 0) {
            const bool holds = frame().registers[static_cast<std::size_t>(text.guard)] != 0;
            if (holds == text.guard_negated) return;
        }
        const std::string_view name = statement.opcode.row->name;
        if (name == "bra") {
            const auto& label =
                frame().function->text->labels[static_cast<std::size_t>(text.operands[0].index)];
            frame().next = label.at;
        } else if (name == "exit") {
            frames_.clear();
        } else if (name == "ret") {
            leave();
        } else if (name == "call") {
            enter(text);
        } else if (name == "ld") {
            load(statement);
        } else if (name == "st") {
            store(statement);
        } else if (name == "mov" && text.operands[0].kind == Kind::vector) {
            unpack(statement);
        } else if (statement.family) {
            evaluate(statement);
        } else {
            fail(text, "no single thread can run this");
        }
    }

    // --- values

    Bits source(const ptx::Operand& operand, Type type) {
        const Bits mask = type == Type::pred ? 1 : mask_of(type);
        switch (operand.kind) {
            case Kind::reg: {
                const Bits value = frame().registers[static_cast<std::size_t>(operand.index)];
                return (operand.negated ? value ^ 1 : value) & mask;
            }
            case Kind::integer:
            case Kind::float_bits:
                return operand.bits & mask;
            case Kind::floating:
                // A 64-bit constant keeps all bits, even those of a NaN.
                return type == Type::f64 ? operand.bits : bits_of(type, std::bit_cast<double>(operand.bits));
            case Kind::special:
                return special(operand.name);
            case Kind::variable:
                return local_base + local_stride * static_cast<std::uint64_t>(operand.index);
            case Kind::vector: {
                Bits value = 0;
                const unsigned part = bits_in(type) / static_cast<unsigned>(operand.parts.size());
                for (std::size_t i = operand.parts.size(); i-- > 0;) {
                    value = value << part | source(operand.parts[i], part == 16 ? Type::b16 : Type::b32);
                }
                return value;
            }
            default:
                throw std::runtime_error("an operand no single thread can read");
        }
    }

    Bits special(std::string_view name) const {
        if (name == "%tid.x") return thread_;
        if (name == "%ntid.x") return launch_.block;
        if (name == "%ctaid.x") return block_;
        if (name == "%nctaid.x") return launch_.grid;
        if (name == "%laneid") return thread_ % 32;
        throw std::runtime_error("the register " + std::string(name) + " is not known here");
    }

    // An integer in a register wider than its type is sign- or zero-extended by its type.
    void write(const ptx::Operand& operand, Type type, Bits bits) {
        if (operand.kind == Kind::sink) return;
        const auto index = static_cast<std::size_t>(operand.index);
        const Type held = frame().function->text->registers[index];
        if (type != Type::pred && is_integer(type)) bits = static_cast<Bits>(integer_of(type, bits));
        frame().registers[index] = held == Type::pred ? bits & 1 : bits & mask_of(register_of(held));
    }
    static Type register_of(Type type) {  // 8-bit registers hold 16 bits
        return ptx::bytes_of(type) == 1 ? Type::b16 : type;
    }

    void evaluate(const Statement& statement) {
        const ptx::Instruction& text = *statement.text;
        const Signature& signature = statement.signature;
        // The carry is not an operand.
        const bool carries = statement.family->results == "Tp";
        const unsigned sources = signature.source_count - carries;
        Bits values[5] = {};
        for (unsigned i = 0; i < sources; ++i) values[i] = source(text.operands[i + 1], signature.sources[i]);
        if (carries) values[sources] = frame().carry;
        Answers answers;
        statement.family->evaluate({statement.opcode, values}, answers);
        for (unsigned i = 0; i < answers.count; ++i) {
            if (answers.at[i].unspecified || answers.at[i].tolerance)
                fail(text, "PTX leaves this result open");
        }
        if (carries) frame().carry = answers.at[1].bits != 0;
        const ptx::Operand& to = text.operands[0];
        if (to.kind == Kind::pair) {
            write(to.parts[0], answers.at[0].type, answers.at[0].bits);
            write(to.parts[1], answers.at[1].type, answers.at[1].bits);
        } else {
            write(to, answers.at[0].type, answers.at[0].bits);
        }
    }

    void unpack(const Statement& statement) {
        const auto& parts = statement.text->operands[0].parts;
        const Bits value = source(statement.text->operands[1], statement.opcode.type);
        const unsigned width = bits_in(statement.opcode.type) / static_cast<unsigned>(parts.size());
        for (std::size_t i = 0; i < parts.size(); ++i) {
            write(parts[i], width == 16 ? Type::b16 : Type::b32, value >> (i * width));
        }
    }

    // --- memory

    std::byte* place(const ptx::Instruction& text, const ptx::Operand& address, std::size_t bytes) {
        if (address.kind != Kind::address || address.parts.size() != 1)
            fail(text, "this address is not known here");
        const ptx::Operand& base = address.parts[0];
        if (base.kind == Kind::variable) {
            auto& variable = frame().variables[static_cast<std::size_t>(base.index)];
            if (address.bits + bytes > variable.size()) fail(text, "beyond the variable");
            return variable.data() + address.bits;
        }
        const std::uint64_t at = frame().registers[static_cast<std::size_t>(base.index)] + address.bits;
        if (at % bytes != 0) fail(text, "misaligned");
        if (at - local_base < local_stride * frame().variables.size()) {
            auto& variable = frame().variables[(at - local_base) / local_stride];
            const std::uint64_t offset = (at - local_base) % local_stride;
            if (offset + bytes > variable.size()) fail(text, "beyond local memory");
            return variable.data() + offset;
        }
        for (const auto& region : launch_.memory) {
            if (at - region.base < region.bytes.size() && at - region.base + bytes <= region.bytes.size())
                return region.bytes.data() + (at - region.base);
        }
        fail(text, "a wild address");
    }

    static std::span<const ptx::Operand> parts_of(const ptx::Operand& operand) {
        return operand.kind == Kind::vector ? std::span(operand.parts) : std::span(&operand, 1);
    }

    void load(const Statement& statement) {
        const ptx::Instruction& text = *statement.text;
        const auto parts = parts_of(text.operands[0]);
        const std::size_t bytes = ptx::bytes_of(statement.opcode.type);
        const std::byte* at = place(text, text.operands[1], bytes * parts.size());
        for (std::size_t i = 0; i < parts.size(); ++i) {
            Bits value = 0;
            std::memcpy(&value, at + i * bytes, bytes);
            write(parts[i], statement.opcode.type, value);
        }
    }

    void store(const Statement& statement) {
        const ptx::Instruction& text = *statement.text;
        const auto parts = parts_of(text.operands[1]);
        const std::size_t bytes = ptx::bytes_of(statement.opcode.type);
        std::byte* at = place(text, text.operands[0], bytes * parts.size());
        for (std::size_t i = 0; i < parts.size(); ++i) {
            const Bits value = source(parts[i], statement.opcode.type);
            std::memcpy(at + i * bytes, &value, bytes);
        }
    }

    // --- calls

    void enter(const ptx::Instruction& text) {
        const Call call = call_of(text);
        const Function* callee = nullptr;
        for (const Function& function : functions_) {
            if (function.text->name == call.target) callee = &function;
        }
        if (!callee) fail(text, "no such function");
        Frame made = frame_of(*callee);
        made.call = &text;
        for (std::size_t i = 0; call.arguments && i < call.arguments->parts.size(); ++i) {
            const auto formal = static_cast<std::size_t>(callee->text->parameters.at(i));
            made.variables[formal] =
                frame().variables[static_cast<std::size_t>(call.arguments->parts[i].index)];
        }
        frames_.push_back(std::move(made));
    }

    void leave() {
        const Frame left = std::move(frames_.back());
        frames_.pop_back();
        if (frames_.empty() || !left.call) return;
        const Call call = call_of(*left.call);
        for (std::size_t i = 0; call.results && i < call.results->parts.size(); ++i) {
            const auto formal = static_cast<std::size_t>(left.function->text->results.at(i));
            frame().variables[static_cast<std::size_t>(call.results->parts[i].index)] =
                left.variables[formal];
        }
    }

    const std::vector<Function>& functions_;
    const Interpreter::Launch& launch_;
    std::uint32_t block_, thread_;
    std::vector<Frame> frames_;
};

}  // namespace

Interpreter::Interpreter(std::string_view text) : program_(std::make_unique<Program>()) {
    program_->module = ptx::parse(text);
    for (const ptx::Function& function : program_->module.functions) {
        Function made{&function, {}};
        for (const ptx::Instruction& instruction : function.body) {
            const auto found = emulated::program::find_operation(instruction.opcode);
            const auto* opcode = std::get_if<Opcode>(&found);
            if (!opcode) fail(instruction, "not in the operation table");
            Statement statement{&instruction, *opcode, family_of(*opcode), {}};
            if (statement.family) statement.signature = signature_of(*opcode, *statement.family);
            made.body.push_back(statement);
        }
        program_->functions.push_back(std::move(made));
    }
    for (const Function& function : program_->functions) {
        if (function.text->is_entry) program_->kernel = &function;
    }
    if (!program_->kernel) throw std::runtime_error("no kernel");
}

Interpreter::~Interpreter() = default;

void Interpreter::run(const Launch& launch, std::uint32_t block, std::uint32_t thread) const {
    Thread(program_->functions, *program_->kernel, launch, block, thread).run();
}

}  // namespace reference
