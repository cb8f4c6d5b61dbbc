#include "graph/pipeline/placement.h"

#include <algorithm>

#include "graph/evaluate.h"

namespace pruner {
namespace {

Result<LoopNodes> find_loops(const VaryingNetwork& network) {
  const Graph& graph = network.graph;
  LoopNodes loops;
  loops.round_of.assign(graph.nodes.size(), -1);
  std::vector<int> made_in(graph.values.size(), -1);  // loop in whose rounds each value is
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    const Node& node = graph.nodes[n];
    const auto in_another = [&](int loop) {
      return std::ranges::any_of(node.inputs, [&](ValueId id) {
        return id.valid() && made_in[id.value] >= 0 && made_in[id.value] != loop;
      });
    };
    const auto nested = [&] {
      return Error(node_label(graph, node), ": a loop in a loop whose rounds the data say");
    };
    if (is_loop_node(node)) {
      const auto [known, fresh] = loops.numbers.try_emplace(loop_name(node), loops.numbers.size());
      const auto loop = static_cast<int>(known->second);
      loops.around.resize(loops.numbers.size());
      loops.around[known->second].push_back(n);
      const bool begins = node.op == kLoopBegin;
      if (in_another(begins ? -1 : loop)) return nested();
      if (begins)
        for (const ValueId id : node.outputs) made_in[id.value] = loop;
      continue;
    }
    int& loop = loops.round_of[n];
    for (const ValueId id : node.inputs)
      if (id.valid() && loop < 0) loop = made_in[id.value];
    if (in_another(loop)) return nested();
    // A value that follows from shapes that are the same in each round is known before the rounds.
    const auto is_known = [&](ValueId id) {
      return network.is_constant(id) && network.depends_on(id).empty();
    };
    if (std::ranges::all_of(node.outputs, is_known)) loop = -1;
    for (const ValueId id : node.outputs) made_in[id.value] = loop;
  }
  return loops;
}

class Placer {
 public:
  Placer(const VaryingNetwork& network, LoopNodes loops)
      : network_(network), loops_(std::move(loops)), begin_levels_(loops_.around.size(), 0) {
    const Graph& graph = network.graph;
    read_outside_ = {graph.outputs.begin(), graph.outputs.end()};
    for (const Node& node : graph.nodes) {
      const std::vector<ValueId> read = network.read_between(node);
      read_outside_.insert(read.begin(), read.end());
    }
  }

  Result<Placement> run() {
    // A loop begins behind all that its rounds read.
    std::vector<Place> places = place_all();
    for (size_t round = 0; begin_loops_later(); ++round) {
      if (round > places.size()) return Error("a loop reads what is made behind it");
      places = place_all();
    }
    std::set<Place> stages;
    // Before loops somebody has to hand on the constants that they begin with.
    if (!loops_.around.empty() && reads_constants()) stages.insert({-1, -1, 0, {}});
    for (const Place& place : places)
      if (place.level >= 0) stages.insert(place);
    const std::vector<Place> order(stages.begin(), stages.end());
    Placement placement{std::move(loops_), {}, std::vector<int>(places.size(), -1)};
    for (size_t n = 0; n < places.size(); ++n) {
      if (places[n].level >= 0)
        placement.stage_of[n] =
            static_cast<int>(std::ranges::lower_bound(order, places[n]) - order.begin());
    }
    for (const Place& place : order) placement.stages.push_back(place.symbols);
    return placement;
  }

 private:
  /// A stage: where it stands among the others, and the symbols that its shapes depend on. The
  /// rounds of a loop are where it begins.
  struct Place {
    int position = 0;
    int loop = -1;
    int level = 0;
    Symbols symbols = {};
    friend auto operator<=>(const Place&, const Place&) = default;
  };
  /// The levels that have to be run before a value exists, each with the symbols of its stage
  /// (null: the value is found, joined, a loop's or an input).
  using Sources = std::set<std::pair<int, const Symbols*>>;

  /// Whether a constant that no stage computes is read outside of the stages.
  bool reads_constants() const {
    return std::ranges::any_of(read_outside_, [&](ValueId id) {
      return network_.is_constant(id) && !network_.is_found(id);
    });
  }

  bool is_constant(const Node& node) const {
    return std::ranges::all_of(node.outputs, [&](ValueId id) { return network_.is_constant(id); });
  }

  /// Returns the stage of each node; at level -1 no stage computes the node.
  std::vector<Place> place_all() {
    const Graph& graph = network_.graph;
    // The sources of each value. A constant has the sources of the shapes that it is made of.
    std::vector<Sources> sources(graph.values.size());
    std::vector<Place> places(graph.nodes.size(), Place{0, -1, -1});
    std::map<std::string, size_t> finders;  // nodes, by the value with room for all
    levels_.assign(graph.values.size(), -1);
    asked_.assign(graph.values.size(), {});
    for (size_t n = 0; n < graph.nodes.size(); ++n) {
      const Node& node = graph.nodes[n];
      Sources before;
      for (const ValueId id : node.inputs)
        if (id.valid()) before.insert(sources[id.value].begin(), sources[id.value].end());
      const auto note = [&](int level, const Symbols* symbols) {
        for (const ValueId id : node.outputs) {
          sources[id.value] = {{level, symbols}};
          levels_[id.value] = level;
        }
      };
      if (VaryingNetwork::is_found(node) || network_.is_join(node) || is_loop_node(node)) {
        note(level_between(node, before), nullptr);
        continue;
      }
      note_asked(node);
      const std::optional<Symbols> key = symbols_of(node);
      if (is_constant(node)) {
        for (const ValueId id : node.outputs) {
          sources[id.value] = before;
          for (const auto& [other, symbols] : before)
            levels_[id.value] = std::max(levels_[id.value], other);
        }
      }
      if (!key) continue;
      int level = 0;
      for (const auto& [other, others] : before)
        level = std::max(level, other + (others != nullptr && *others != *key ? 1 : 0));
      const int loop = loops_.round_of[n];
      const int position = loop < 0 ? level : begin_levels_[static_cast<size_t>(loop)];
      places[n] = {position, loop, level, *key};
      // Found values are counted in the stage that finds them: the file has one node for both.
      const std::string& name = graph[node.outputs[0]].name;
      const auto finder = finders.find(name.substr(0, name.find("/count")));
      if (finder != finders.end()) places[n] = places[finder->second];
      if (network_.rooms.contains(node.outputs[0])) finders[name] = n;
      note(places[n].level, &places[n].symbols);
    }
    return places;
  }

  /// The level of a node that is run between stages.
  int level_between(const Node& node, const Sources& before) const {
    int level = 0;
    for (const auto& [other, key] : before) level = std::max(level, other + 1);
    if (!is_loop_node(node)) return level;
    const int begin = begin_levels_[loops_.loop_of(node)];
    return std::max(level, node.op == kLoopBegin ? begin : begin + 1);
  }

  /// Returns the symbols that the node's stage depends on; nullopt if no stage has to compute the
  /// node. A constant that varies is computed only if it is read outside of the stages.
  std::optional<Symbols> symbols_of(const Node& node) const {
    Symbols key;
    const auto add = [&](const Symbols& more) { key.insert(more.begin(), more.end()); };
    for (const ValueId id : node.outputs) add(network_.depends_on(id));
    const auto read = [&](ValueId id) { return read_outside_.contains(id); };
    if (is_constant(node) && (key.empty() || std::ranges::none_of(node.outputs, read)))
      return std::nullopt;
    for (const ValueId id : node.inputs) {
      if (!id.valid()) continue;
      add(network_.depends_on(id));
      if (network_.is_constant(id) && !network_.depends_on(id).empty()) add(asked_[id.value]);
    }
    return key;
  }

  /// A constant that is made of shapes is made anew of these, so that its stage has to know all of
  /// each, not only the extents that it is made of.
  void note_asked(const Node& node) {
    Symbols all;
    for (const ValueId id : node.inputs) {
      if (!id.valid()) continue;
      const Symbols& own = asks_shape(node) ? network_.depends_on(id) : asked_[id.value];
      if (asks_shape(node) || network_.is_constant(id)) all.insert(own.begin(), own.end());
    }
    for (const ValueId id : node.outputs) asked_[id.value] = all;
  }

  /// Returns whether a loop has to begin later than it does.
  bool begin_loops_later() {
    bool later = false;
    const auto reads = [&](size_t loop, const Node& node) {
      for (const ValueId id : node.inputs) {
        if (!id.valid() || is_made_in(id, loop) ||
            (network_.is_constant(id) && network_.depends_on(id).empty()))
          continue;
        int& begin = begin_levels_[loop];
        if (levels_[id.value] < begin) continue;
        begin = levels_[id.value] + 1;
        later = true;
      }
    };
    const std::vector<Node>& nodes = network_.graph.nodes;
    for (size_t n = 0; n < nodes.size(); ++n)
      if (loops_.round_of[n] >= 0) reads(static_cast<size_t>(loops_.round_of[n]), nodes[n]);
    for (size_t loop = 0; loop < loops_.around.size(); ++loop)
      for (const size_t n : loops_.around[loop]) reads(loop, nodes[n]);
    return later;
  }

  bool is_made_in(ValueId id, size_t loop) const {
    const int maker = network_.makers[id.value];
    if (maker >= 0 && loops_.round_of[static_cast<size_t>(maker)] == static_cast<int>(loop))
      return true;
    return network_.begins_loop(id) && loops_.loop_of(*network_.maker_of(id)) == loop;
  }

  const VaryingNetwork& network_;
  LoopNodes loops_;
  std::vector<int> begin_levels_;   // level at which each loop begins
  std::set<ValueId> read_outside_;  // values read between stages, and outputs
  // The symbols of all shapes that a constant is made of; one set per value.
  std::vector<Symbols> asked_;
  std::vector<int> levels_;  // level of the stage behind which each value exists
};

}  // namespace

Result<Placement> place_nodes(const VaryingNetwork& network) {
  TRY_ASSIGN(LoopNodes loops, find_loops(network));
  return Placer(network, std::move(loops)).run();
}

}  // namespace pruner
