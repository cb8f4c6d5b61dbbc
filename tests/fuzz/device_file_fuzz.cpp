// layer: analysis
// A device file -> a target, for which spaces and drafts are made.
#include <cmath>

#include "analysis/draft.h"
#include "fuzz/fuzz_target.h"
#include "fuzz/json_mutator.h"
#include "space/operator_task.h"
#include "space/space.h"
#include "target/device_file.h"

namespace pruner {

std::vector<std::string> seeds() {
  std::vector<std::string> texts;
  for (const DeviceFile& file : device_files()) {
    const Result<Json> json = parse_json(file.text);
    CHECK(json.ok());
    const Result<Target> target = target_from_json(*json);
    CHECK(target.ok());
    texts.push_back(target_to_json(*target).dump());  // every field
  }
  return texts;
}

bool read_input(std::string_view bytes) {
  const Result<Json> json = parse_json(bytes);
  if (!json.ok()) return false;
  const Result<Target> target = target_from_json(*json);
  if (!target.ok()) return false;
  const Json printed = target_to_json(*target);
  const Result<Target> again = target_from_json(printed);
  CHECK(again.ok() && target_to_json(*again) == printed) << printed;
  (void)device_fingerprint(*target);
  Rng rng(1);
  for (const char* op : {"matmul 24 40 32 +bias", "softmax 4 64"}) {
    const Space space = make_space(operator_task(op, *target));
    const Candidate candidate = sample(space, rng);
    if (!is_legal(space, candidate)) continue;  // a machine that is too small for any
    CHECK(!std::isnan(draft_latency_s(make_loop_nest(space, candidate), *target)));
  }
  return true;
}

}  // namespace pruner
