#include "model/architecture.h"

#include <algorithm>

namespace pruner {

const Architecture* find_architecture(std::string_view name) {
  const auto* const found = std::ranges::find_if(
      kArchitectures, [&](const Architecture* a) { return a->name == name || a->command == name; });
  return found == std::end(kArchitectures) ? nullptr : *found;
}

std::string or_list(std::string (*name)(const Architecture& architecture),
                    const std::string& last) {
  std::vector<std::string> words;
  for (const Architecture* architecture : kArchitectures) words.push_back(name(*architecture));
  words.push_back(last);
  std::erase(words, "");
  std::string list = words[0];
  for (size_t i = 1; i < words.size(); ++i)
    list.append(i + 1 < words.size() ? ", " : " or ").append(words[i]);
  return list;
}

std::vector<Branch> branches_of(const Architecture& architecture) {
  std::vector<Branch> branches;
  for (const Layer& layer : architecture.layers)
    if (layer.kind == LayerKind::kInput) branches.push_back({layer.input, (&layer)[1]});
  return branches;
}

bool Architecture::reads(Input input) const {
  return std::ranges::any_of(branches_of(*this), [&](const Branch& b) { return b.input == input; });
}

}  // namespace pruner
