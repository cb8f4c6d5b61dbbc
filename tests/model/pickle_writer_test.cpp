#include "model/pickle_writer.h"

#include "golden.h"
#include "model/pickle.h"

namespace pruner {
namespace {

constexpr std::string_view kKnown[] = {"collections OrderedDict", "module Class"};

TEST(PrintPickle, WritesWhatPythonReads) {
  // pickle.loads of it gives OrderedDict([("a", [1, -2, 2.5, None, True]), ("b", ("x", b"y"))]).
  const std::string stream = print_pickle(
      pickled_ordered_dict({{"a",
                             pickled_list({pickled_integer(1),
                                           pickled_integer(-2),
                                           pickled_float(2.5),
                                           pickled_none(),
                                           pickled_bool(true)})},
                            {"b", pickled_tuple({pickled_text("x"), pickled_bytes("y")})}}));
  constexpr char kBytes[] =
      "\x80\x03"
      "ccollections\nOrderedDict\n(tR(X\x01\x00\x00\x00"
      "a](J\x01\x00\x00\x00J\xfe\xff\xff\xffG@\x04\x00\x00\x00\x00\x00\x00N\x88"
      "eX\x01\x00\x00\x00"
      "b(X\x01\x00\x00\x00xB\x01\x00\x00\x00ytu.";
  EXPECT_EQ(stream, std::string(kBytes, sizeof(kBytes) - 1));
}

TEST(PrintPickle, IsReadBack) {
  const std::string stream = print_pickle(pickled_object(
      "module Class", {{"none", pickled_dict({})}, {"number", pickled_integer(70000)}}));
  const Result<Pickle> pickle = read_pickle(stream, kKnown);
  ASSERT_TRUE(pickle.ok()) << pickle.error().message();
  const PickleNode& object = (*pickle)[pickle->root];
  EXPECT_EQ((*pickle)[object.callee].text, "module Class");
  EXPECT_EQ((*pickle)[pickle->find(object.state, "number")].integer, 70000);
  EXPECT_TRUE((*pickle)[pickle->find(object.state, "none")].items.empty());
}

}  // namespace
}  // namespace pruner
