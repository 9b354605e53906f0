// Reads the symbols of a cubin from ELF's symbol table, and the parameters of its kernels from the sections
// .nv.info.KERNEL. When the cubin is loaded, the driver's values are compared with them; a difference is an error.
#include <algorithm>
#include <bit>
#include <cstring>
#include <map>
#include <optional>

#include <fmt/format.h>

#include <bascule/interface/errors/error.hpp>
#include <bascule/jit/link/code.hpp>

namespace bascule {
namespace {

// The structures of a 64-bit ELF file.
struct FileHeader {
    unsigned char identification[16];
    std::uint16_t type, machine;
    std::uint32_t version;
    std::uint64_t entry, program_headers, section_headers;
    std::uint32_t flags;
    std::uint16_t own_bytes, program_header_bytes, program_header_count, section_header_bytes, section_count,
        section_names;
};
struct SectionHeader {
    std::uint32_t name, type;
    std::uint64_t flags, address, offset, bytes;
    std::uint32_t link, info;
    std::uint64_t alignment, entry_bytes;
};
struct Symbol {
    std::uint32_t name;
    std::uint8_t info, other;
    std::uint16_t section;
    std::uint64_t value, bytes;
};
static_assert(sizeof(FileHeader) == 64 && sizeof(SectionHeader) == 64 && sizeof(Symbol) == 24);

constexpr std::uint16_t machine_of_cuda = 190;
constexpr std::size_t abi_in_identification = 7;
constexpr unsigned char abi_of_cuda_13 = 0x41;
constexpr std::uint32_t symbol_table = 2;      // SHT_SYMTAB
constexpr std::uint8_t weak_binding = 2;       // STB_WEAK
constexpr std::uint8_t global_binding = 1;     // STB_GLOBAL
constexpr std::uint8_t object_type = 1;        // STT_OBJECT
constexpr std::uint8_t cuda_object_type = 13;  // in code that is to be linked
constexpr std::uint8_t function_type = 2;      // STT_FUNC
constexpr std::uint8_t is_entry = 0x10;        // a bit of a symbol's `other`
constexpr std::uint8_t parameter_info = 0x17;
constexpr std::uint8_t has_bytes_behind =
    4;  // form of an entry of .nv.info: its value is the size of its data

/// One entry of .nv.info about a parameter.
struct ParameterInfo {
    std::uint32_t index;
    std::uint16_t ordinal, offset;
    std::uint32_t size_and_more;  ///< the size is above 18 other bits
};

class Cubin {
  public:
    explicit Cubin(const Code& code) : code_(code), header_(read<FileHeader>(0)) {
        if (header_.machine != machine_of_cuda || header_.section_header_bytes != sizeof(SectionHeader))
            fail("it is an ELF file of another kind");
    }

    CodeOutline outline() const {
        CodeOutline outline;
        outline.arch = arch();
        const SectionHeader names = section(header_.section_names);
        std::map<std::string_view, SectionHeader> infos;
        std::optional<SectionHeader> symbols;
        for (std::uint16_t i = 0; i < header_.section_count; ++i) {
            const SectionHeader each = section(i);
            const std::string_view name = text_at(names, each.name);
            constexpr std::string_view info = ".nv.info.";
            if (name.starts_with(info)) infos[name.substr(info.size())] = each;
            if (each.type == symbol_table) symbols = each;
        }
        if (!symbols) fail("it has no symbols");
        for (std::uint64_t i = 0; i < symbols->bytes / sizeof(Symbol); ++i) {
            add(outline, read<Symbol>(symbols->offset + i * sizeof(Symbol)), section(symbols->link), names,
                infos);
        }
        return outline;
    }

  private:
    [[noreturn]] void fail(std::string_view why) const {
        throw CompileError(fmt::format("{} is not a cubin that can be read: {}.", code_.name, why));
    }

    template <class T>
    T read(std::uint64_t offset) const {
        const std::string& bytes = code_.bytes;
        if (offset > bytes.size() || bytes.size() - offset < sizeof(T)) fail("it is cut off");
        T value;
        std::memcpy(&value, bytes.data() + offset, sizeof value);
        return value;
    }

    SectionHeader section(std::uint32_t index) const {
        return read<SectionHeader>(header_.section_headers + std::uint64_t{index} * sizeof(SectionHeader));
    }

    std::string_view text_at(const SectionHeader& strings, std::uint32_t offset) const {
        const std::uint64_t begin = strings.offset + offset;
        const std::size_t end = code_.bytes.find('\0', begin);
        if (begin >= code_.bytes.size() || end == std::string::npos) fail("it is cut off");
        return std::string_view(code_.bytes).substr(begin, end - begin);
    }

    /// The architecture is in the lowest byte of the flags, since CUDA 13 in the second one.
    Arch arch() const {
        const bool is_13 = header_.identification[abi_in_identification] == abi_of_cuda_13;
        const auto number = static_cast<int>(is_13 ? header_.flags >> 8 & 0xFF : header_.flags & 0xFF);
        return {number / 10, number % 10, '\0', false};
    }

    void add(CodeOutline& outline, const Symbol& symbol, const SectionHeader& strings,
             const SectionHeader& section_names,
             const std::map<std::string_view, SectionHeader>& infos) const {
        const std::uint8_t told = symbol.info & 0xF;
        const std::uint8_t type = told == cuda_object_type ? object_type : told;
        const std::uint8_t binding = symbol.info >> 4;
        if (type != object_type && type != function_type && symbol.section != 0) return;
        CodeSymbol made;
        made.name = text_at(strings, symbol.name);
        if (made.name.empty()) return;
        made.bytes = symbol.bytes;
        made.kind = type == object_type ? CodeSymbol::Kind::variable : CodeSymbol::Kind::function;
        made.linkage = binding == weak_binding     ? CodeSymbol::Linkage::weak
                       : binding == global_binding ? CodeSymbol::Linkage::global
                                                   : CodeSymbol::Linkage::local;
        if (symbol.section == 0) {
            made.linkage = CodeSymbol::Linkage::external;
            made.is_needed = true;
        } else if (type == object_type && symbol.section < header_.section_count) {
            made.is_constant =
                text_at(section_names, section(symbol.section).name).starts_with(".nv.constant");
        }
        if (type == function_type && (symbol.other & is_entry) != 0) {
            made.kind = CodeSymbol::Kind::kernel;
            if (const auto info = infos.find(made.name); info != infos.end())
                made.parameters = parameters_in(info->second);
        }
        outline.symbols.push_back(std::move(made));
    }

    std::vector<CodeParameter> parameters_in(const SectionHeader& info) const {
        std::map<std::uint16_t, ParameterInfo> found;
        for (std::uint64_t at = info.offset; at + 4 <= info.offset + info.bytes;) {
            const auto form = read<std::uint8_t>(at);
            const auto attribute = read<std::uint8_t>(at + 1);
            const auto value = read<std::uint16_t>(at + 2);
            at += 4;
            if (form != has_bytes_behind) continue;
            if (attribute == parameter_info) {
                const auto one = read<ParameterInfo>(at);
                found[one.ordinal] = one;
            }
            at += value;
        }
        std::vector<CodeParameter> parameters;
        for (const auto& [ordinal, one] : found) {
            // The file does not contain the alignment; one that explains the offset is sufficient.
            constexpr std::uint32_t largest = 128;
            const std::uint32_t alignment =
                one.offset == 0 ? 1U : std::min(largest, 1U << std::countr_zero(std::uint32_t{one.offset}));
            parameters.push_back({one.size_and_more >> 18, alignment, CodeParameter::Type::unknown});
        }
        return parameters;
    }

    const Code& code_;
    FileHeader header_;
};

}  // namespace

CodeOutline outline_of_cubin(const Code& cubin) { return Cubin(cubin).outline(); }

}  // namespace bascule
