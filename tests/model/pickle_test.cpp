#include "model/pickle.h"

#include "golden.h"

namespace pruner {
namespace {

constexpr std::string_view kKnown[] = {"collections OrderedDict"};

TEST(ReadPickle, ReadsWhatPythonWrites) {
  // pickle.dumps(OrderedDict([("a", [1, -2, 2.5, None, True]), ("b", ("x", 300))]), 2)
  constexpr char kBytes[] =
      "\x80\x02"
      "ccollections\nOrderedDict\nq\x00)Rq\x01(X\x01\x00\x00\x00"
      "aq\x02]q\x03(K\x01J"
      "\xfe\xff\xff\xffG@\x04\x00\x00\x00\x00\x00\x00N\x88"
      "eX\x01\x00\x00\x00"
      "bq\x04X\x01\x00\x00"
      "\x00xq\x05M,\x01\x86q\x06u.rest";
  const std::string stream(kBytes, sizeof(kBytes) - 1);
  const Result<Pickle> pickle = read_pickle(stream, kKnown);
  ASSERT_TRUE(pickle.ok()) << pickle.error().message();
  EXPECT_EQ(stream.substr(pickle->bytes), "rest");
  const PickleNode& a = (*pickle)[pickle->find(pickle->root, "a")];
  ASSERT_EQ(a.items.size(), 5u);
  EXPECT_EQ((*pickle)[a.items[0]].integer, 1);
  EXPECT_EQ((*pickle)[a.items[1]].integer, -2);
  EXPECT_EQ((*pickle)[a.items[2]].number, 2.5);
  EXPECT_EQ((*pickle)[a.items[3]].kind, PickleKind::kNone);
  const PickleNode& b = (*pickle)[pickle->find(pickle->root, "b")];
  ASSERT_EQ(b.kind, PickleKind::kTuple);
  EXPECT_EQ((*pickle)[b.items[0]].text, "x");
  EXPECT_EQ((*pickle)[b.items[1]].integer, 300);
  EXPECT_EQ(pickle->find(pickle->root, "c"), kNoNode);
}

TEST(ReadPickle, NamesAClassThatIsNotOnTheList) {
  EXPECT_ERROR(read_pickle("\x80\x02"
                           "cos\nsystem\n(X\x02\x00\x00\x00lstR.",
                           kKnown),
               "byte 2 of the pickle: the class os.system is none of a cost model's");
}

TEST(ReadPickle, RefusesWhatIsDamaged) {
  EXPECT_ERROR(read_pickle("", kKnown), "truncated");
  EXPECT_ERROR(read_pickle("\x80\x04N.", kKnown), "protocol 4, expected 2 or 3");
  EXPECT_ERROR(read_pickle("\x80\x02X\xff\xff\xff\xff", kKnown), "truncated");
  EXPECT_ERROR(read_pickle("\x80\x02.", kKnown), "a value is missing");
  EXPECT_ERROR(read_pickle("\x80\x02(R.", kKnown), "a value is missing");
  EXPECT_ERROR(read_pickle("\x80\x02t.", kKnown), "a mark is missing");
  EXPECT_ERROR(read_pickle("\x80\x02h\x07.", kKnown), "a value that was not stored");
  EXPECT_ERROR(read_pickle("\x80\x02N)R.", kKnown), "a call of what is no class");
  EXPECT_ERROR(read_pickle("\x80\x02}(Nu.", kKnown), "a key without a value");
  EXPECT_ERROR(read_pickle("\x80\x02S'old'\n.", kKnown), "opcode 83");
}

}  // namespace
}  // namespace pruner
