// layer: model
// A pickle, alone and as the one of a checkpoint's archive -> weights.
#include "fuzz/fuzz_target.h"
#include "fuzz/input_file.h"
#include "model/checkpoints.h"
#include "model/pickle.h"
#include "model/torch_checkpoint.h"
#include "support/check.h"

namespace pruner {
namespace {

std::vector<ZipEntry> small_archive() {
  return state_dict_entries({{"norm.weight", {{2}, {1, 2}}}, {"norm.bias", {{1, 2}, {3, 4}}}});
}

}  // namespace

std::vector<std::string> seeds() {
  using std::string_literals::operator""s;
  return {small_archive()[0].bytes,
          "\x80\x02"
          "ccollections\nOrderedDict\nq\0)Rq\x01(X\x01\0\0\0"
          "aq\x02]q\x03(K\x01J\xfe\xff\xff\xffG@\x04\0\0\0\0\0\0N\x88"
          "eX\x01\0\0\0bq\x04X\x01\0\0\0xq\x05M,\x01\x86q\x06u."s};
}

bool read_input(std::string_view bytes) {
  (void)read_torch_pickle(bytes);
  constexpr std::string_view kKnown[] = {
      "collections OrderedDict", "torch FloatStorage", "torch._utils _rebuild_tensor_v2"};
  if (!read_pickle(bytes, kKnown).ok()) return false;
  std::vector<ZipEntry> entries = small_archive();
  entries[0].bytes = bytes;
  CHECK(write_zip(input_path(), entries).ok());
  (void)read_torch_state_dict(input_path());
  return true;
}

}  // namespace pruner
