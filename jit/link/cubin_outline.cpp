// Reads the symbols of a cubin from ELF's symbol table, and the parameters of its kernels from the sections
// .nv.info.KERNEL. When the cubin is loaded, the driver's values are compared with them; a difference is an error.
#include <algorithm>
#include <bit>
#include <cstring>
#include <elf.h>
#include <map>
#include <optional>

#include <fmt/format.h>

#include <bascule/interface/errors/error.hpp>
#include <bascule/jit/link/code.hpp>

namespace bascule {
namespace {

constexpr unsigned char abi_of_cuda_13 = 0x41;
constexpr std::uint8_t cuda_object_type = 13;  // in code that is to be linked
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
    explicit Cubin(const Code& code) : code_(code), header_(read<Elf64_Ehdr>(0)) {
        if (header_.e_machine != EM_CUDA || header_.e_shentsize != sizeof(Elf64_Shdr))
            fail("it is an ELF file of another kind");
    }

    CodeOutline outline() const {
        CodeOutline outline;
        outline.arch = arch();
        const Elf64_Shdr names = section(header_.e_shstrndx);
        std::map<std::string_view, Elf64_Shdr> infos;
        std::optional<Elf64_Shdr> symbols;
        for (std::uint16_t i = 0; i < header_.e_shnum; ++i) {
            const Elf64_Shdr each = section(i);
            const std::string_view name = text_at(names, each.sh_name);
            constexpr std::string_view info = ".nv.info.";
            if (name.starts_with(info)) infos[name.substr(info.size())] = each;
            if (each.sh_type == SHT_SYMTAB) symbols = each;
        }
        if (!symbols) fail("it has no symbols");
        for (std::uint64_t i = 0; i < symbols->sh_size / sizeof(Elf64_Sym); ++i) {
            add(outline, read<Elf64_Sym>(symbols->sh_offset + i * sizeof(Elf64_Sym)),
                section(symbols->sh_link), names, infos);
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

    Elf64_Shdr section(std::uint32_t index) const {
        return read<Elf64_Shdr>(header_.e_shoff + std::uint64_t{index} * sizeof(Elf64_Shdr));
    }

    std::string_view text_at(const Elf64_Shdr& strings, std::uint32_t offset) const {
        const std::uint64_t begin = strings.sh_offset + offset;
        const std::size_t end = code_.bytes.find('\0', begin);
        if (begin >= code_.bytes.size() || end == std::string::npos) fail("it is cut off");
        return std::string_view(code_.bytes).substr(begin, end - begin);
    }

    /// The architecture is in the lowest byte of the flags, since CUDA 13 in the second one.
    Arch arch() const {
        const bool is_13 = header_.e_ident[EI_OSABI] == abi_of_cuda_13;
        const auto number = static_cast<int>(is_13 ? header_.e_flags >> 8 & 0xFF : header_.e_flags & 0xFF);
        return {number / 10, number % 10, '\0', false};
    }

    void add(CodeOutline& outline, const Elf64_Sym& symbol, const Elf64_Shdr& strings,
             const Elf64_Shdr& section_names, const std::map<std::string_view, Elf64_Shdr>& infos) const {
        const std::uint8_t told = ELF64_ST_TYPE(symbol.st_info);
        const std::uint8_t type = told == cuda_object_type ? std::uint8_t{STT_OBJECT} : told;
        const std::uint8_t binding = ELF64_ST_BIND(symbol.st_info);
        if (type != STT_OBJECT && type != STT_FUNC && symbol.st_shndx != 0) return;
        CodeSymbol made;
        made.name = text_at(strings, symbol.st_name);
        if (made.name.empty()) return;
        made.bytes = symbol.st_size;
        made.kind = type == STT_OBJECT ? CodeSymbol::Kind::variable : CodeSymbol::Kind::function;
        made.linkage = binding == STB_WEAK     ? CodeSymbol::Linkage::weak
                       : binding == STB_GLOBAL ? CodeSymbol::Linkage::global
                                               : CodeSymbol::Linkage::local;
        if (symbol.st_shndx == 0) {
            made.linkage = CodeSymbol::Linkage::external;
            made.is_needed = true;
        } else if (type == STT_OBJECT && symbol.st_shndx < header_.e_shnum) {
            made.is_constant =
                text_at(section_names, section(symbol.st_shndx).sh_name).starts_with(".nv.constant");
        }
        if (type == STT_FUNC && (symbol.st_other & is_entry) != 0) {
            made.kind = CodeSymbol::Kind::kernel;
            if (const auto info = infos.find(made.name); info != infos.end())
                made.parameters = parameters_in(info->second);
        }
        outline.symbols.push_back(std::move(made));
    }

    std::vector<CodeParameter> parameters_in(const Elf64_Shdr& info) const {
        std::map<std::uint16_t, ParameterInfo> found;
        for (std::uint64_t at = info.sh_offset; at + 4 <= info.sh_offset + info.sh_size;) {
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
    Elf64_Ehdr header_;
};

}  // namespace

CodeOutline outline_of_cubin(const Code& cubin) { return Cubin(cubin).outline(); }

}  // namespace bascule
