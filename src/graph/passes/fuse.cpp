// Numbers the groups of nodes that become one kernel, in relay's manner (Roesch et al. 2019, and
// relay's fuse_ops.cc). Over the post-dominator tree an anchor (convolution, product, pool,
// reduction) takes the element-wise nodes that follow it. Then chains of element-wise and injective
// nodes join. All paths out of a group leave from its last node, so a group has one output and the
// groups have no cycle. If two convolutions meet in an Add, the deeper convolution takes the Add.
// On CPUs a convolution whose result no L2 holds joins the depthwise convolution that reads the
// result. A product joins the nodes that turn its columns (a rotary embedding). On GPUs a product
// on matrix instructions joins the norm or the depthwise convolution that makes its data. A group
// has at most kMostNodes nodes, so every step looks at no more nodes, and the pass is linear.
#include <algorithm>
#include <numeric>
#include <optional>
#include <span>

#include "graph/held_operand.h"
#include "graph/ops/window.h"
#include "graph/passes.h"
#include "graph/rotation.h"

namespace pruner {
namespace {

constexpr int kExit = -1;          // the post-dominator of outputs
constexpr size_t kMostNodes = 64;  // nodes of a group; built-in networks have at most 32

class Fuser {
 public:
  Fuser(const Graph& graph, const PassOptions& options);
  /// Returns the group of each node, or -1 for an alias.
  std::vector<int> run();

 private:
  Fusion fusion(int n) const { return fusion_[n]; }
  const std::vector<int64_t>& shape(int n) const {
    return graph_[graph_.nodes[n].outputs[0]].shape;
  }
  bool is_anchor(int n) const { return find_graph_op(graph_.nodes[n].op)->is_anchor(); }
  int post_dominator(int n) const { return post_dominator_[n]; }
  int tree_depth(int n) const { return n == kExit ? 0 : tree_depth_[n]; }
  void set_post_dominator(int n, int sink);
  int meet(int a, int b) const;
  int root(int n) const;
  int anchor(int n) const { return anchor_[root(n)]; }
  Fusion widest(int n) const { return widest_[root(n)]; }
  void join(int n, int sink);
  int last_of_group(int n) const;
  std::optional<std::vector<int>> between(int n, int sink) const;
  bool fits_group(std::span<const int> nodes, int sink) const;
  bool repeats_work(int n, int sink) const;
  bool reads_as_data(int contraction, int n) const;
  bool makes_indices(std::span<const int> nodes, int sink) const;
  std::optional<std::vector<int>> next_of_epilogue(int anchor, int last, size_t size) const;
  void take_epilogue(int anchor);
  bool is_large(int n) const;
  void join_depthwise(int anchor);
  void join_rotation(int anchor, const Readers& readers);
  void join_operand(int anchor);
  void join_heads(int maker);
  void join_gate(int product, const Readers& readers);
  bool join_consumer(int n);

  const Graph& graph_;
  const PassOptions& options_;
  // Each vector has one element per node:
  std::vector<Fusion> fusion_;
  std::vector<std::vector<int>> readers_;  // each reader once, ascending
  std::vector<int> post_dominator_, tree_depth_, depth_;
  std::vector<int> jump_;       // a post-dominator that is further away
  std::vector<int> parent_;     // union-find
  std::vector<size_t> size_;    // nodes of the group, at its root
  std::vector<int> anchor_;     // anchor of the group or -1, at its root
  std::vector<Fusion> widest_;  // widest pattern in the group, at its root
};

Fuser::Fuser(const Graph& graph, const PassOptions& options) : graph_(graph), options_(options) {
  const size_t n = graph.nodes.size();
  std::vector<int> producer(graph.values.size(), -1);
  readers_.resize(n);
  depth_.assign(n, 0);
  std::vector<bool> leaves(n, false);  // read from outside
  for (size_t i = 0; i < n; ++i) {
    const Node& node = graph.nodes[i];
    fusion_.push_back(node.in_place ? Fusion::kAlias : find_graph_op(node.op)->fusion);
    for (const ValueId id : node.inputs) {
      const int p = id.valid() ? producer[id.value] : -1;
      if (p < 0) continue;
      std::vector<int>& readers = readers_[p];
      if (readers.empty() || readers.back() != static_cast<int>(i)) {
        readers.push_back(static_cast<int>(i));
      }
      depth_[i] = std::max(depth_[i], depth_[p] + 1);
    }
    for (const ValueId id : node.outputs) {
      producer[id.value] = static_cast<int>(i);
    }
  }
  for (const ValueId id : graph.outputs) {
    const int p = producer[id.value];
    if (p >= 0) leaves[p] = true;
  }
  post_dominator_.assign(n, kExit);
  jump_.assign(n, kExit);
  tree_depth_.assign(n, 1);
  for (size_t i = n; i-- > 0;) {
    if (leaves[i] || readers_[i].empty()) continue;
    int common = readers_[i][0];
    for (const int reader : readers_[i]) common = meet(common, reader);
    set_post_dominator(static_cast<int>(i), common);
  }
  parent_.resize(n);
  size_.assign(n, 1);
  std::iota(parent_.begin(), parent_.end(), 0);
  anchor_.assign(n, -1);
  for (size_t i = 0; i < n; ++i) {
    if (is_anchor(static_cast<int>(i))) anchor_[i] = static_cast<int>(i);
  }
  widest_ = fusion_;
}

// A jump doubles its length if the two jumps before it are of equal length. Any node above is then
// reached in a logarithm of steps (Myers, "An applicative random-access stack", 1983).
void Fuser::set_post_dominator(int n, int sink) {
  post_dominator_[n] = sink;
  tree_depth_[n] = tree_depth(sink) + 1;
  const auto jump = [&](int at) { return at == kExit ? kExit : jump_[at]; };
  const int once = jump(sink), twice = jump(once);
  const bool equal = tree_depth(sink) - tree_depth(once) == tree_depth(once) - tree_depth(twice);
  jump_[n] = equal ? twice : sink;
}

// Returns the nearest node that post-dominates a and b.
int Fuser::meet(int a, int b) const {
  while (tree_depth(a) != tree_depth(b)) {
    int& lower = tree_depth(a) > tree_depth(b) ? a : b;
    const int other = tree_depth(a) > tree_depth(b) ? b : a;
    lower = tree_depth(jump_[lower]) >= tree_depth(other) ? jump_[lower] : post_dominator(lower);
  }
  while (a != b) {
    const bool below = jump_[a] != jump_[b];  // a jump to the same node may pass the nearest
    a = below ? jump_[a] : post_dominator(a);
    b = below ? jump_[b] : post_dominator(b);
  }
  return a;
}

// Returns the node that stands for n's group.
int Fuser::root(int n) const {
  while (parent_[n] != n) n = parent_[n];
  return n;
}

// Returns the node that ends n's group, where all paths from n leave it.
int Fuser::last_of_group(int n) const {
  int last = n;
  while (post_dominator(last) != kExit && root(post_dominator(last)) == root(n))
    last = post_dominator(last);
  return last;
}

void Fuser::join(int n, int sink) {
  const int a = root(n), b = root(sink);
  if (a == b) return;
  const auto from = static_cast<size_t>(a), to = static_cast<size_t>(b);
  parent_[from] = b;
  size_[to] += size_[from];
  if (anchor_[to] < 0) anchor_[to] = anchor_[from];
  widest_[to] = std::max(widest_[to], widest_[from]);
}

// Returns the nodes on paths from n to its post-dominator, without these two nodes; nothing if the
// paths have more nodes than a group may have.
std::optional<std::vector<int>> Fuser::between(int n, int sink) const {
  std::vector<int> found, open = {n};
  while (!open.empty()) {
    const int at = open.back();
    open.pop_back();
    for (const int reader : readers_[at]) {
      if (reader == sink || std::find(found.begin(), found.end(), reader) != found.end()) continue;
      if (found.size() == kMostNodes) return std::nullopt;
      found.push_back(reader);
      open.push_back(reader);
    }
  }
  return found;
}

// Whether the groups of `nodes` and `sink`, joined, have no more nodes than a group may have.
bool Fuser::fits_group(std::span<const int> nodes, int sink) const {
  std::vector<int> roots = {root(sink)};
  for (const int n : nodes) roots.push_back(root(n));
  std::ranges::sort(roots);
  const auto repeated = std::ranges::unique(roots);
  roots.erase(repeated.begin(), repeated.end());
  size_t size = 0;
  for (const int r : roots) size += size_[r];
  return size <= kMostNodes;
}

// Whether the sink reads an element of n more than once.
bool Fuser::repeats_work(int n, int sink) const {
  const GraphOp& op = *find_graph_op(graph_.nodes[sink].op);
  if (op.is(kReadsOnce)) return false;
  if (op.is(kRepeatsReads)) return true;
  return element_count(shape(sink)) > element_count(shape(n)) && !is_anchor(sink);
}

// Returns the nodes that follow `last` in an anchor's epilogue, up to the next post-dominator,
// which stands last; nothing at the end of the epilogue.
std::optional<std::vector<int>> Fuser::next_of_epilogue(int anchor, int last, size_t size) const {
  const int sink = post_dominator(last);
  if (sink == kExit) return std::nullopt;
  std::optional<std::vector<int>> nodes = between(last, sink);
  if (!nodes || size + nodes->size() + 1 > kMostNodes) return std::nullopt;
  nodes->push_back(sink);
  for (const int n : *nodes) {
    if (root(n) != n || fusion(n) > Fusion::kBroadcast || shape(n) != shape(anchor))
      return std::nullopt;
  }
  return nodes;
}

// Joins an anchor with the element-wise nodes behind it. Nodes that undo a Quantize join the reader
// instead, if the reader can take them: the tensor that is stored is then one of bytes.
void Fuser::take_epilogue(int anchor) {
  std::vector<int> taken;
  size_t kept = 0;
  int last = anchor;
  while (const auto nodes = next_of_epilogue(anchor, last, size_[root(anchor)] + taken.size())) {
    taken.insert(taken.end(), nodes->begin(), nodes->end());
    last = taken.back();
    if (graph_.nodes[last].op == "Quantize") kept = taken.size();
  }
  const int reader = post_dominator(last);
  const bool joins = reader != kExit && fusion(reader) <= Fusion::kReduce &&
                     fusion(reader) != Fusion::kInjective && readers_[last].size() == 1;
  if (kept > 0 && joins) taken.resize(kept);
  for (const int n : taken) join(n, anchor);
}

// Whether the L2 caches of all threads cannot hold what a node makes.
bool Fuser::is_large(int n) const {
  const Target& target = options_.target;
  const int64_t bytes =
      element_count(shape(n)) * dtype_bytes(graph_[graph_.nodes[n].outputs[0]].dtype);
  return !graph_.any_extents() && bytes > target.l2_bytes * target.threads;
}

// Joins a convolution with the depthwise convolution that alone reads it (MobileNet's inverted
// residual), if the L2 caches do not hold the tensor between them. The tensor is better made tile
// by tile. This took 0.89 of the time of two kernels at 4.8 MB on two cores with 1 MB each, 0.94
// to 1.1 at less. A pooling gained nothing.
void Fuser::join_depthwise(int anchor) {
  const Node& node = graph_.nodes[anchor];
  if (node.op != "Conv" || OpCall{graph_, node}.sums() || is_depthwise({graph_, node})) return;
  const int last = last_of_group(anchor), reader = post_dominator(last);
  if (reader == kExit || readers_[last].size() != 1 || !is_large(last)) return;
  const OpCall call{graph_, graph_.nodes[reader]};
  const bool joins = call.node.op == "Conv" && is_depthwise(call) &&
                     call.node.inputs[0] == graph_.nodes[last].outputs[0] &&
                     fits_group({{anchor}}, reader);
  if (joins) join(anchor, reader);
}

// Joins a product with the nodes that turn its columns (a rotary embedding), over the reshape into
// heads. Tiles of whole heads are turned while they lie in L1. This took 0.88 of the time of two
// kernels for 128 rows of 9 heads of 64.
void Fuser::join_rotation(int anchor, const Readers& readers) {
  if (graph_.nodes[anchor].op != "MatMul") return;
  const auto nodes = rotation_of(graph_, readers, graph_.nodes[anchor].outputs[0]);
  if (!nodes || size_[root(anchor)] + nodes->size() > kMostNodes) return;
  for (const size_t n : *nodes) {
    const int at = root(static_cast<int>(n));
    if (at != static_cast<int>(n) && at != root(anchor)) return;
  }
  const auto last = static_cast<int>(nodes->back());
  for (const size_t n : *nodes) join(static_cast<int>(n), last);
  join(anchor, last);
}

// Joins a norm of rows, or a depthwise convolution, with the product on a GPU's matrix instructions
// that alone reads it: each block computes its rows of the operand in shared memory. A norm also
// joins the product to whose result it is added.
void Fuser::join_operand(int anchor) {
  const OpCall call{graph_, graph_.nodes[anchor]};
  const bool window = call.node.op == "Conv" && is_depthwise(call) && channels_last(call);
  if (!window && !normalizes_rows(call)) return;
  const int last = last_of_group(anchor);
  // A product and its gate are one kernel, which both read the norm.
  const std::vector<int>& readers = readers_[last];
  if (post_dominator(last) == kExit) return;
  const ValueId made = graph_.nodes[last].outputs[0];
  for (const int reader : readers) {
    const Node& product = graph_.nodes[reader];
    const bool holds = may_hold({graph_, product}, made, options_);
    const bool adds = !window && readers.size() == 1 && this->anchor(reader) >= 0 &&
                      may_add(graph_, product, made, options_);
    if (root(reader) != root(readers[0]) || (!holds && !adds)) return;
  }
  if (fits_group({{anchor}}, readers[0])) join(anchor, readers[0]);
}

// Joins a product with the product of the same data that gates it, if the result of one group is
// read by the other group alone.
void Fuser::join_gate(int product, const Readers& readers) {
  const Node* gate = gate_of(graph_, readers, graph_.nodes[product]);
  if (gate == nullptr) return;
  const int other = static_cast<int>(gate - graph_.nodes.data());
  const auto read_by = [&](int from, int to) {
    const std::vector<int>& all = readers_[last_of_group(from)];
    return !all.empty() &&
           std::ranges::all_of(all, [&](int reader) { return root(reader) == root(to); });
  };
  for (const auto& [from, to] : {std::pair(product, other), std::pair(other, product)}) {
    const int last = last_of_group(from);
    if (root(from) == root(to) || post_dominator(last) == kExit || !read_by(from, to)) continue;
    if (fits_group({{from}}, to)) join(from, readers_[last][0]);
  }
}

// Joins element-wise and injective nodes that make the queries or the keys of an attention, and
// that it alone reads, with it (rotary embeddings).
void Fuser::join_heads(int maker) {
  if (anchor(maker) >= 0 || widest(maker) > Fusion::kInjective) return;
  if (readers_[maker].size() != 1 || post_dominator(maker) != readers_[maker][0]) return;
  const int reader = readers_[maker][0];
  const Node& attention = graph_.nodes[reader];
  const ValueId made = graph_.nodes[maker].outputs[0];
  const bool is_head = attention.inputs[0] == made || attention.inputs[1] == made;
  if (attention.op == "FusedAttention" && is_head && attention.inputs[2] != made &&
      may_rotate({graph_, attention}, options_) && fits_group({{maker}}, reader))
    join(maker, reader);
}

// Whether a contraction reads the node as its data, and nothing else does: what is done to the data
// can then be done tile by tile (DenseNet's batch norm before a convolution).
bool Fuser::reads_as_data(int contraction, int n) const {
  const Node& node = graph_.nodes[contraction];
  const Node& data = graph_.nodes[n];
  if (!find_graph_op(node.op)->is(kTakesDataByTile)) return false;
  if (OpCall{graph_, node}.integer("group", 1) != 1) return false;
  return readers_[n].size() == 1 && node.inputs[0] == data.outputs[0] &&
         node.inputs[1] != data.outputs[0];
}

// Whether one of the nodes makes the indices of another or of the sink: these stay a tensor, whose
// elements are checked before a kernel reads at them.
bool Fuser::makes_indices(std::span<const int> nodes, int sink) const {
  const auto makes = [&](ValueId id) {
    return std::ranges::any_of(nodes, [&](int at) {
      return std::ranges::find(graph_.nodes[at].outputs, id) != graph_.nodes[at].outputs.end();
    });
  };
  const auto reads_there = [&](int at) {
    const ValueId indices = indices_of(graph_.nodes[at]);
    return indices.valid() && makes(indices);
  };
  return reads_there(sink) || std::ranges::any_of(nodes, reads_there);
}

// Joins an element-wise or injective node to the node that reads it. A contraction takes
// element-wise nodes only.
bool Fuser::join_consumer(int n) {
  const int sink = post_dominator(n);
  if (sink == kExit || anchor(n) >= 0 || widest(n) > Fusion::kInjective) return false;
  if (root(sink) == root(n) || repeats_work(n, sink)) return false;
  std::optional<std::vector<int>> nodes = between(n, sink);
  if (!nodes) return false;
  std::vector<int> joined = *nodes;
  joined.push_back(n);
  if (makes_indices(joined, sink)) return false;
  for (const int at : *nodes) {
    if (anchor(at) >= 0 || fusion(at) > Fusion::kInjective) return false;
  }
  const bool elementwise = widest(n) <= Fusion::kBroadcast;
  if (fusion(sink) == Fusion::kReduce) {
    if (!elementwise) return false;
  } else if (fusion(sink) == Fusion::kOutEWiseFusable) {
    if (!elementwise || !reads_as_data(sink, n)) return false;
  } else if (fusion(sink) > Fusion::kInjective) {
    return false;
  } else if (anchor(sink) >= 0) {  // a side branch of an epilogue
    if (!elementwise || shape(n) != shape(sink) || fusion(anchor(sink)) == Fusion::kOpaque)
      return false;
  }
  nodes->push_back(n);
  if (!fits_group(*nodes, sink)) return false;
  for (const int at : *nodes) join(at, sink);
  return true;
}

std::vector<int> Fuser::run() {
  const int n = static_cast<int>(graph_.nodes.size());
  std::vector<int> anchors, sources;
  for (int i = 0; i < n; ++i) {
    if (fusion(i) == Fusion::kReduce || fusion(i) == Fusion::kOutEWiseFusable) anchors.push_back(i);
    if (is_anchor(i)) sources.push_back(i);
  }
  // The deeper anchor goes first: it takes the Add in which two anchors meet.
  std::stable_sort(
      anchors.begin(), anchors.end(), [&](int a, int b) { return depth_[a] > depth_[b]; });
  for (const int anchor : anchors) take_epilogue(anchor);
  if (options_.joins_in_tiles()) {
    const Readers readers = readers_of(graph_);
    for (const int anchor : anchors) {
      join_depthwise(anchor);
      join_rotation(anchor, readers);
    }
  }
  if (holds_operands(options_) && !graph_.any_extents()) {
    const Readers readers = readers_of(graph_);
    for (const int source : sources) join_gate(source, readers);
    for (const int source : sources) join_operand(source);
  }
  // The walk goes from the outputs back: a chain joins the group that its last node has joined.
  for (int i = n; i-- > 0;) join_consumer(i);
  if (holds_operands(options_) && !graph_.any_extents())
    for (int i = 0; i < n; ++i) join_heads(i);
  // Groups are numbered by the places of their last nodes, which make the groups' outputs.
  std::vector<int> last(static_cast<size_t>(n), -1), group(static_cast<size_t>(n), -1);
  for (int i = 0; i < n; ++i) last[root(i)] = i;
  std::vector<int> number(static_cast<size_t>(n), -1);  // number of the group, at its root
  int groups = 0;
  for (int i = 0; i < n; ++i) {
    if (fusion(i) < Fusion::kAlias && last[root(i)] == i) number[root(i)] = groups++;
  }
  for (int i = 0; i < n; ++i) group[i] = number[root(i)];
  return group;
}

}  // namespace

Graph fuse(Graph graph, const PassOptions& options) {
  const std::vector<int> groups = Fuser(graph, options).run();
  for (size_t i = 0; i < groups.size(); ++i) graph.nodes[i].group = groups[i];
  return graph;
}

}  // namespace pruner
