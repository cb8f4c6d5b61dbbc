// Einsum: each operand's diagonals and sums of its own, then operands two by two as batched
// matmuls. Dimensions are letters; those of "..." are the characters from '0' on, aligned at the
// last of them.
#include <algorithm>
#include <cctype>
#include <map>
#include <numeric>

#include "graph/functions/body.h"

namespace pruner {
namespace {

struct Labelled {
  Term term;
  std::string labels;  // one for each dimension
};

struct Equation {
  std::vector<std::string> operands;
  std::string result;
};

bool has(const std::string& labels, char label) { return labels.find(label) != std::string::npos; }

template <typename Test>
std::string those(const std::string& labels, const Test& test) {
  std::string found;
  for (const char label : labels) {
    if (test(label)) found += label;
  }
  return found;
}

// `term` with "..." as `dots` labels, of which there are `most` in the operand that has most.
std::string with_dots(std::string term, int64_t dots, int64_t most) {
  const size_t at = term.find("...");
  if (at == std::string::npos) return term;
  std::string labels;
  for (int64_t i = most - dots; i < most; ++i) labels += static_cast<char>('0' + i);
  return term.replace(at, 3, labels);
}

int64_t letters(const std::string& term) {
  return std::ranges::count_if(term, [](unsigned char c) { return std::isalpha(c); });
}

Result<Unit> check_term(const std::string& term) {
  std::string rest = term;
  if (const size_t at = rest.find("..."); at != std::string::npos) rest.erase(at, 3);
  if (letters(rest) == static_cast<int64_t>(rest.size())) return Unit{};
  return Error("the term \"", term, "\" of the equation is made of more than letters and one ...");
}

// Without "->" the result has the dots, then what occurs once, in the order of the alphabet.
std::string implied_result(const std::vector<std::string>& terms) {
  std::map<char, int> count;
  bool dots = false;
  for (const std::string& term : terms) {
    dots |= has(term, '.');
    for (const char c : term) count[c] += c != '.';
  }
  std::string result = dots ? "..." : "";
  for (const auto& [label, n] : count) {
    if (n == 1) result += label;
  }
  return result;
}

Result<Equation> parse(std::string text, const OpCall& call) {
  std::erase(text, ' ');
  const size_t arrow = text.find("->");
  std::vector<std::string> terms(1);
  for (const char c : text.substr(0, arrow)) {
    if (c == ',') {
      terms.emplace_back();
    } else {
      terms.back() += c;
    }
  }
  if (terms.size() != call.num_inputs())
    return Error("the equation has ", terms.size(), " terms for ", call.num_inputs(), " inputs");
  Equation equation;
  equation.result = arrow == std::string::npos ? implied_result(terms) : text.substr(arrow + 2);
  TRY(check_term(equation.result));
  std::vector<int64_t> dots;
  for (size_t i = 0; i < terms.size(); ++i) {
    TRY(check_term(terms[i]));
    dots.push_back(call.rank(i) - letters(terms[i]));
    if (dots[i] < 0 || (dots[i] > 0 && !has(terms[i], '.')))
      return Error("the term \"", terms[i], "\" does not fit ", print_shape(call.shape(i)));
  }
  const int64_t most = *std::ranges::max_element(dots);
  for (size_t i = 0; i < terms.size(); ++i)
    equation.operands.push_back(with_dots(terms[i], dots[i], most));
  equation.result = with_dots(equation.result, most, most);
  return equation;
}

Labelled ordered(const Labelled& x, const std::string& labels) {
  if (x.labels == labels) return x;
  std::vector<int64_t> order;
  for (const char label : labels) order.push_back(static_cast<int64_t>(x.labels.find(label)));
  return {x.term.body->transpose(x.term, order), labels};
}

// Dimensions i and j, of one label: they become one, of which every (n + 1)th element stays.
Labelled merged(const Labelled& x, size_t i, size_t j) {
  Body& b = *x.term.body;
  const int64_t n = x.term.extent(static_cast<int64_t>(i));
  if (x.term.extent(static_cast<int64_t>(j)) != n)
    b.fail(Error("dimension ", x.labels[i], " of one operand has two extents"));
  std::vector<int64_t> order, shape;
  std::string labels;
  for (size_t d = 0; d < x.labels.size(); ++d) {
    if (d == i || d == j) continue;
    order.push_back(static_cast<int64_t>(d));
    shape.push_back(x.term.extent(static_cast<int64_t>(d)));
    labels += x.labels[d];
  }
  order.push_back(static_cast<int64_t>(i));
  order.push_back(static_cast<int64_t>(j));
  shape.push_back(n * n);
  const auto last = static_cast<int64_t>(shape.size()) - 1;
  const Term flat = b.reshape(b.transpose(x.term, order), shape);
  const Term diagonal = b.add("Slice",
                              {flat,
                               b.integers({{0}}),
                               b.integers({{n * n}}),
                               b.integers({{last}}),
                               b.integers({{n + 1}})});
  return {diagonal, labels + x.labels[i]};
}

Labelled diagonal(Labelled x) {
  for (size_t j = 0; j < x.labels.size(); ++j) {
    const size_t i = x.labels.find(x.labels[j]);
    if (i == j) continue;
    x = merged(x, i, j);
    j = 0;  // the dimensions have moved: once more
  }
  return x;
}

Labelled summed_to(const Labelled& x, const std::string& kept) {
  std::vector<int64_t> axes;
  for (size_t d = 0; d < x.labels.size(); ++d) {
    if (!has(kept, x.labels[d])) axes.push_back(static_cast<int64_t>(d));
  }
  if (axes.empty()) return x;
  Body& b = *x.term.body;
  return {b.add("ReduceSum", {x.term, b.integers(axes)}, {{"keepdims", int64_t{0}}}),
          those(x.labels, [&](char label) { return has(kept, label); })};
}

class Contraction {
 public:
  Contraction(Body& b, Equation equation) : b_(b), equation_(std::move(equation)) {}
  void write();

 private:
  Result<std::vector<Labelled>> operands();
  Labelled pair(Labelled x, Labelled y, const std::string& kept);
  std::vector<int64_t> shape_of(const std::string& labels) const {
    std::vector<int64_t> shape;
    for (const char label : labels) shape.push_back(extents_.at(label));
    return shape;
  }
  int64_t count(const std::string& labels) const { return element_count(shape_of(labels)); }

  Body& b_;
  Equation equation_;
  std::map<char, int64_t> extents_;
};

// Returns the operands. A dimension with one element broadcasts if another operand has more: the
// dimension is left out.
Result<std::vector<Labelled>> Contraction::operands() {
  std::vector<Labelled> found;
  for (size_t i = 0; i < equation_.operands.size(); ++i) {
    found.push_back(diagonal({b_.input(i), equation_.operands[i]}));
    const std::vector<int64_t> shape = found.back().term.shape();
    for (size_t d = 0; d < shape.size() && d < found.back().labels.size(); ++d) {
      int64_t& extent = extents_.try_emplace(found.back().labels[d], shape[d]).first->second;
      if (extent != shape[d] && extent != 1 && shape[d] != 1)
        return Error("dimension ", found.back().labels[d], " is ", extent, " and ", shape[d]);
      extent = std::max(extent, shape[d]);
    }
  }
  for (Labelled& x : found) {
    const std::vector<int64_t> shape = x.term.shape();
    std::string kept;
    for (size_t d = 0; d < shape.size() && d < x.labels.size(); ++d) {
      if (shape[d] == extents_[x.labels[d]]) kept += x.labels[d];
    }
    if (kept == x.labels) continue;
    x = {b_.reshape(x.term, shape_of(kept)), kept};
  }
  return found;
}

// Contracts x and y. A label in both operands is a batch dimension if `kept` has it, else an inner
// dimension.
Labelled Contraction::pair(Labelled x, Labelled y, const std::string& kept) {
  x = summed_to(x, kept + y.labels);
  y = summed_to(y, kept + x.labels);
  const auto in_both = [&](char label) { return has(y.labels, label); };
  const std::string both = those(x.labels, in_both);
  const std::string batch = those(both, [&](char label) { return has(kept, label); });
  const std::string inner = those(both, [&](char label) { return !has(kept, label); });
  const std::string rows = those(x.labels, [&](char label) { return !has(both, label); });
  const std::string columns = those(y.labels, [&](char label) { return !has(both, label); });
  const std::string labels = batch + rows + columns;
  const Term left = ordered(x, batch + rows + inner).term;
  const Term right = ordered(y, batch + inner + columns).term;
  if (inner.empty()) {
    std::vector<int64_t> shape = shape_of(batch + rows);
    shape.resize(labels.size(), 1);
    std::vector<int64_t> other = shape_of(batch);
    other.resize(batch.size() + rows.size(), 1);
    const std::vector<int64_t> last = shape_of(columns);
    other.insert(other.end(), last.begin(), last.end());
    return {b_.reshape(left, shape) * b_.reshape(right, other), labels};
  }
  const auto matrices = [&](Term term, const std::string& a, const std::string& b) {
    if (batch.empty()) return b_.reshape(term, {count(a), count(b)});
    return b_.reshape(term, {count(batch), count(a), count(b)});
  };
  const Term product =
      b_.add("MatMul", {matrices(left, rows, inner), matrices(right, inner, columns)});
  return {b_.reshape(product, shape_of(labels)), labels};
}

void Contraction::write() {
  const Result<std::vector<Labelled>> inputs = operands();
  if (!inputs.ok()) return b_.fail(inputs.error());
  const std::string& result = equation_.result;
  for (const char label : result) {
    if (!extents_.contains(label) || std::ranges::count(result, label) != 1)
      return b_.fail(Error("dimension ", label, " of the result is in no operand, or twice there"));
  }
  Labelled x = (*inputs)[0];
  for (size_t i = 1; i < inputs->size(); ++i) {
    std::string kept = result;
    for (size_t later = i + 1; later < inputs->size(); ++later) kept += (*inputs)[later].labels;
    x = pair(x, (*inputs)[i], kept);
  }
  x = summed_to(x, result);
  // A dimension is left out only if another operand has more elements, so x has every label.
  b_.output(0, ordered(x, result).term);
}

void einsum(Body& b) {
  const Result<Equation> equation = parse(b.call().text("equation", ""), b.call());
  if (!equation.ok()) return b.fail(equation.error());
  Contraction(b, *equation).write();
}

constexpr Function kEinsumFunctions[] = {{"Einsum", 1, kAnyNumber, "equation:s", einsum}};

}  // namespace

std::span<const Function> einsum_functions() { return kEinsumFunctions; }

}  // namespace pruner
