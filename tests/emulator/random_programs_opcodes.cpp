// Selects the opcodes of random programs.
#include "random_programs.hpp"
#include "reference/grammar.hpp"
#include "vectors.hpp"

namespace random_programs {
namespace {

// True if the device accepts the opcode, and PTX defines its result for one thread to the bit.
bool usable(const std::string& spelling) {
    const auto opcode = vectors::known(spelling);
    if (!opcode) return false;
    const reference::Family* family = reference::family_of(*opcode);
    if (!family || family->results == "Tp") return false;  // carry chains are made as a whole
    reference::Answers answers;
    const reference::Bits ones[5] = {1, 1, 1, 1, 1};
    family->evaluate({*opcode, ones}, answers);
    if (answers.at[0].tolerance) return false;
    return vectors::loads(spelling, *opcode);
}

}  // namespace

Opcodes::Opcodes() {
    for (const reference::Syntax& syntax : reference::scalar_syntax()) {
        std::vector<std::string> good;
        for (std::string& spelling : reference::spellings_of(syntax)) {
            if (usable(spelling)) good.push_back(std::move(spelling));
        }
        if (!good.empty()) lines_.push_back(std::move(good));
    }
}

const std::string& Opcodes::any(std::mt19937_64& random) const {
    const auto& line = lines_[random() % lines_.size()];
    return line[random() % line.size()];
}

}  // namespace random_programs
