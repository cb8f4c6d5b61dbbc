#include <set>

#include "graph/onnx/constructs.h"
#include "graph/small_graph.h"

namespace pruner {
namespace {

// One name is one row: of two, nobody would ever see the second.
TEST(Rows, HaveNamesOfTheirOwn) {
  std::set<std::string_view> names;
  const auto add = [&](std::string_view name) {
    EXPECT_TRUE(names.insert(name).second) << name << " is there twice";
  };
  for (const GraphOp& op : graph_ops()) add(op.name);
  for (const Function& function : graph_functions()) add(function.name);
  for (const Construct& construct : control_flow()) add(construct.op);
  for (const Construct& construct : sequences()) add(construct.op);
  EXPECT_GT(names.size(), 200u);
}

}  // namespace
}  // namespace pruner
