#include "model/weights.h"

#include <cmath>
#include <cstdlib>
#include <set>

#include "golden.h"
#include "model/checkpoints.h"
#include "model/nn/network.h"
#include "model/safetensors.h"
#include "model/synthetic.h"
#include "model/torch_checkpoint.h"
#include "model/train.h"
#include "own_path.h"
#include "support/file.h"
#include "support/json.h"
#include "support/rng.h"

namespace pruner {
namespace {

const std::string kCheckpoints = PRUNER_SHARED_DATA "/pruner-checkpoints/";

std::string scales_json(const ModelWeights& weights) {
  const auto list = [](const std::vector<float>& scale) {
    std::string text;
    for (const float s : scale) text += (text.empty() ? "" : ", ") + std::to_string(s);
    return "[" + text + "]";
  };
  return "{\"statement_scale\": " + list(weights.scale[Input::kStatements]) +
         ", \"access_scale\": " + list(weights.scale[Input::kDataflow]) + "}";
}

/// A .pth of the tensors at `path`, and its scales beside it.
void write_pth(const std::string& path, ModelWeights weights) {
  if (weights.scale[Input::kStatements].size() == kRowFeatures)
    weights = without_units(std::move(weights));
  ASSERT_TRUE(write_zip(path, state_dict_entries(weights.tensors)).ok());
  const std::string scales = std::filesystem::path(path).replace_extension(".scales.json");
  ASSERT_TRUE(write_file(scales, scales_json(weights)).ok());
}

TEST(ModelWeights, OfBothNetworksAreReadBack) {
  for (const Architecture* architecture : {&kPacm, &kTenSetMlp}) {
    const std::string path = own_path("round.safetensors");
    ModelWeights written = random_weights(*architecture, 1);
    written.scale[Input::kStatements][3] = 1.7f;
    ASSERT_TRUE(save_weights(path, written).ok());
    const Result<ModelWeights> read = load_weights(path);
    ASSERT_TRUE(read.ok()) << read.error().message();
    EXPECT_EQ(*read, written);
  }
}

// Those of older versions get the columns that are new, which a file has where they say something.
TEST(ModelWeights, OfUnitsAreZerosInWhatKnowsNothingOfThem) {
  const std::string path = own_path("units.safetensors");
  for (const Architecture* architecture : {&kPacm, &kTenSetMlp}) {
    const std::string first = std::string(branches_of(*architecture)[0].first.name) + ".weight";
    const auto saved_columns = [&] {
      const Result<SafetensorsFile> file = parse_safetensors(*read_file(path));
      EXPECT_TRUE(file.ok());
      const int64_t columns = file->tensors.at(first).shape[1];
      const std::string version = columns == kPublishedRowFeatures           ? "1"
                                  : columns == kRowFeatures                  ? "4"
                                  : columns == kRowFeatures - kGroupFeatures ? "3"
                                                                             : "2";
      EXPECT_EQ(file->metadata.at("feature_version"), version);
      return columns;
    };
    ModelWeights weights = initial_weights(*architecture, 3);
    for (const Branch& branch : branches_of(*architecture))
      weights.scale[branch.input].assign(static_cast<size_t>(input_row(branch.input).width), 1);
    ASSERT_TRUE(save_weights(path, weights).ok());
    EXPECT_EQ(saved_columns(), kPublishedRowFeatures);
    EXPECT_EQ(*load_weights(path), weights);
    const std::vector<float>& row = weights.tensors[first].values;
    EXPECT_NE(row[kPublishedRowFeatures - 1], 0);
    for (size_t j = kPublishedRowFeatures; j < kRowFeatures; ++j) EXPECT_EQ(row[j], 0);

    const int units = kPublishedRowFeatures + kUnitFeatures;
    weights.tensors[first].values[static_cast<size_t>(units) - 1] = 0.25f;
    weights.scale[Input::kStatements][static_cast<size_t>(units) - 1] = 2;
    ASSERT_TRUE(save_weights(path, weights).ok());
    EXPECT_EQ(saved_columns(), units);
    EXPECT_EQ(*load_weights(path), weights);

    constexpr int kOfWarps = kRowFeatures - kGroupFeatures;
    weights.tensors[first].values[kOfWarps - 1] = 0.5f;
    ASSERT_TRUE(save_weights(path, weights).ok());
    EXPECT_EQ(saved_columns(), kOfWarps);
    EXPECT_EQ(*load_weights(path), weights);

    weights.tensors[first].values[kRowFeatures - 1] = 0.5f;
    ASSERT_TRUE(save_weights(path, weights).ok());
    EXPECT_EQ(saved_columns(), kRowFeatures);
    EXPECT_EQ(*load_weights(path), weights);
    const std::string pickle = own_path("units.pkl");
    ASSERT_TRUE(save_weights(pickle, weights).ok());
    EXPECT_EQ(load_weights(pickle)->tensors[first].values[kRowFeatures - 1], 0);
  }
}

TEST(ModelWeights, AreReadBackWhateverTheLengthOfTheirHeader) {
  const std::string path = own_path("header.safetensors");
  ModelWeights written = random_weights(kTenSetMlp, 1);
  std::set<uint8_t> first_bytes;  // lengths that are multiples of 8 begin with these bytes
  for (int i = 0; i < 256; i += 8) {
    written.mode.assign(static_cast<size_t>(i), 'm');
    ASSERT_TRUE(save_weights(path, written).ok());
    const Result<ModelWeights> read = load_weights(path);
    ASSERT_TRUE(read.ok()) << read.error().message();
    EXPECT_EQ(*read, written);
    first_bytes.insert(static_cast<uint8_t>(read_file(path)->front()));
  }
  EXPECT_EQ(first_bytes.size(), 32u);  // 0x80 among them, as a pickle begins
}

TEST(ModelWeights, OfAStateDictHaveTheirScalesBeside) {
  const std::string path = own_path("net.pth");
  const ModelWeights written = random_weights(kPacm, 2);
  write_pth(path, written);
  const Result<ModelWeights> read = load_weights(path);
  ASSERT_TRUE(read.ok()) << read.error().message();
  EXPECT_EQ(*read, written);
  const std::string alone = own_path("alone.pth");
  std::filesystem::remove(testing::TempDir() + "feature_scales.json");
  ASSERT_TRUE(write_zip(alone, state_dict_entries(written.tensors)).ok());
  EXPECT_ERROR(load_weights(alone), "missing scales: expected ");
}

TEST(ModelWeights, OfAPickleBringTheirScalesAndWhatTheySaw) {
  for (const Architecture* architecture : {&kPacm, &kTenSetMlp}) {
    const std::string path = own_path("round.pkl");
    ModelWeights written = random_weights(*architecture, 6);
    written.scale[Input::kStatements][5] = 3.25f;
    written.mode = "fine_tune_mix_task";
    written.trained_on = {.steps = {"train pam"}, .programs = {3, 1ull << 63}, .workloads = {7}};
    ASSERT_TRUE(save_weights(path, written).ok());
    const Result<ModelWeights> read = load_weights(path);
    ASSERT_TRUE(read.ok()) << read.error().message();
    EXPECT_EQ(*read, written);
  }
  const ModelWeights tlp = initial_weights(kTlp, 1);
  EXPECT_ERROR(save_weights("tlp.pkl", tlp), "tlp.pkl: a .pkl holds PaCM or TenSetMLP; name the");
}

TEST(ModelWeights, OfAPickleScoreTheSameUnderTorch) {
  std::string python;
  for (const char* each : {"python3", "/usr/bin/python3"}) {
    if (std::system((std::string(each) + " -c 'import torch' 2>/dev/null").c_str()) == 0)
      python = each;
  }
  if (python.empty()) GTEST_SKIP() << "no python3 with torch here";
  const std::vector<ProgramFeatures> programs = features_of(synthetic_samples(3, 2, 1));
  Json json = {{"sizes", Json::array()}, {"rows", Json::array()}, {"dataflow", Json::array()}};
  const auto add_rows = [](std::span<const float> values, size_t width, Json& rows) {
    for (size_t i = 0; i < values.size(); i += width) rows.push_back(values.subspan(i, width));
  };
  for (const ProgramFeatures& program : programs) {
    json["sizes"].push_back(program.row_count());
    for (size_t r = 0; r < program.row_count(); ++r)
      json["rows"].push_back(
          std::span(program.rows).subspan(r * kRowFeatures, kPublishedRowFeatures));
    json["dataflow"].push_back(Json::array());
    add_rows(program.dataflow, kDataflowFeatures, json["dataflow"].back());
  }
  const std::string inputs = own_path("programs.json"), out = own_path("scores.json");
  ASSERT_TRUE(write_file(inputs, json.dump()).ok());
  for (const Architecture* architecture : {&kPacm, &kTenSetMlp}) {
    ModelWeights weights = random_weights(*architecture, 6);
    widen_scales(scales_of(synthetic_samples(3, 2, 1)), weights);
    const std::string path = own_path("torch.pkl");
    ASSERT_TRUE(save_weights(path, weights).ok());
    const std::string command =
        python + " " + test_path("model/load_pickle.py") + " " + path + " " + inputs + " > " + out;
    ASSERT_EQ(std::system(command.c_str()), 0) << *read_file(out);
    const Json said = *parse_json(*read_file(out));
    std::vector<std::string> names;
    for (const WeightSpec& spec : tensor_specs(weights)) names.push_back(spec.name);
    EXPECT_EQ(said["names"].get<std::vector<std::string>>(), names);
    const std::vector<float> expected = Network(weights).predict(programs, 1);
    for (size_t i = 0; i < programs.size(); ++i)
      EXPECT_NEAR(said["scores"][i].get<float>(), expected[i], 1e-4) << said["torch"];
  }
}

TEST(ModelWeights, ThatDoNotFitAreRefusedInOneLine) {
  const std::string path = own_path("bad.pth");
  ModelWeights weights = random_weights(kPacm, 3);
  weights.tensors["fuse.0.weight"].shape = {384, 256};
  write_pth(path, weights);
  EXPECT_ERROR(load_weights(path),
               "bad.pth: tensor \"fuse.0.weight\": expected [256, 384], found [384, 256]");

  weights = random_weights(kPacm, 3);
  weights.tensors.erase("l1.0.bias");
  write_pth(path, weights);
  EXPECT_ERROR(load_weights(path), "tensor \"l1.0.bias\": expected [256], found none");

  weights = random_weights(kPacm, 3);
  weights.tensors["decoder.bias"].values[0] = NAN;
  write_pth(path, weights);
  EXPECT_ERROR(load_weights(path),
               "tensor \"decoder.bias\": element 0 is nan, expected a finite number");

  weights = without_units(random_weights(kPacm, 3));
  weights.scale[Input::kStatements].pop_back();
  write_pth(path, weights);
  EXPECT_ERROR(load_weights(path), "scales of statement rows: expected 174 numbers, found 173");
  weights.scale[Input::kStatements].push_back(0);
  write_pth(path, weights);
  EXPECT_ERROR(load_weights(path), "scales of statement rows: element 173 is 0, expected a number");

  weights = random_weights(kTenSetMlp, 3);
  weights.tensors["classifier.weight"] = {{1}, {0}};
  write_pth(path, weights);
  EXPECT_ERROR(load_weights(path),
               "tensor \"classifier.weight\": tenset-mlp has none of that name");
}

TEST(ModelWeights, AreNotReadFromOtherFiles) {
  const std::string path = own_path("other");
  const std::pair<std::string, const char*> files[] = {
      {"", "the file is empty"},
      {"some text that is no checkpoint", "not a checkpoint: expected a safetensors file, or"},
      {"PK\x03\x04 and then nothing", "cannot open as a zip archive"},
      {"\x80\x03"
       "cbuiltins\neval\n.",
       "the class builtins.eval is none of a cost model's"},
      {"\x80\x03N.", "expected a tuple of network, mode and scales"},
      {std::string("\x02\0\0\0\0\0\0\0{}", 10), "architecture \"\", expected \"pacm\""}};
  for (const auto& [bytes, words] : files) {
    ASSERT_TRUE(write_file(path, bytes).ok());
    EXPECT_ERROR(load_weights(path), words);
    EXPECT_ERROR(load_weights(path), path + ": ");
  }
  EXPECT_ERROR(load_weights("/nowhere/x.pkl"), "/nowhere/x.pkl: ");
}

TEST(ModelWeights, OfThePublishedCheckpointsAreTheSameInBothForms) {
  if (!std::filesystem::exists(kCheckpoints)) GTEST_SKIP() << "no " << kCheckpoints;
  const std::pair<const char*, const char*> files[] = {
      {"pam_k80_1500", "base_only"}, {"fine_tune_pam_a100", "fine_tune_mix_task"}};
  for (const auto& [name, mode] : files) {
    const Result<ModelWeights> pkl = load_weights(kCheckpoints + name + ".pkl");
    ASSERT_TRUE(pkl.ok()) << pkl.error().message();
    Result<ModelWeights> pth = load_weights(kCheckpoints + name + ".pth");
    ASSERT_TRUE(pth.ok()) << pth.error().message();
    EXPECT_EQ(pkl->mode, mode);
    EXPECT_EQ(pkl->tensors, pth->tensors);
    ASSERT_EQ(pkl->scale[Input::kStatements].size(), pth->scale[Input::kStatements].size());
    for (size_t i = 0; i < pkl->scale[Input::kStatements].size(); ++i)
      EXPECT_NEAR(pkl->scale[Input::kStatements][i],
                  pth->scale[Input::kStatements][i],
                  1e-6 * pkl->scale[Input::kStatements][i]);
    EXPECT_FLOAT_EQ(pkl->scale[Input::kDataflow][0], 93.3593979f);
    const std::string path = own_path("written.pkl");
    ASSERT_TRUE(save_weights(path, *pkl).ok());
    EXPECT_EQ(*load_weights(path), *pkl);
  }
}

/// Reads damaged copies of `bytes`: cut at, and with a byte changed at, each of `offsets`. They may
/// be refused or give other numbers; they may not crash.
int refused(std::string bytes,
            std::span<const size_t> offsets,
            const std::function<bool(const std::string&)>& reads) {
  int count = 0;
  for (const size_t at : offsets) {
    count += !reads(bytes.substr(0, at));
    for (const char flip : {'\x01', '\x80', '\xff'}) {
      bytes[at] = static_cast<char>(bytes[at] ^ flip);
      count += !reads(bytes);
      bytes[at] = static_cast<char>(bytes[at] ^ flip);
    }
  }
  return count;
}

std::vector<size_t> offsets_of(size_t first, size_t last, size_t step) {
  std::vector<size_t> offsets;
  for (size_t at = first; at < last; at += step) offsets.push_back(at);
  return offsets;
}

TEST(ModelWeights, OfDamagedFilesNeverCrash) {
  const ModelWeights weights = random_weights(kTenSetMlp, 4);
  const std::string path = own_path("damaged");
  const auto loads = [&](const std::string& bytes) {
    EXPECT_TRUE(write_file(path, bytes).ok());
    return load_weights(path).ok();
  };
  ASSERT_TRUE(save_weights(path, weights).ok());
  std::string bytes = *read_file(path);
  EXPECT_GT(refused(bytes, offsets_of(0, 1000, 17), loads), 100);

  // The pickle within a .pth, and the tables of the archive around it.
  const std::string pth = own_path("damaged.pth");
  write_pth(pth, weights);
  const auto loads_pth = [&](const std::string& damaged) {
    EXPECT_TRUE(write_file(pth, damaged).ok());
    return load_weights(pth).ok();
  };
  bytes = *read_file(pth);
  EXPECT_GT(refused(bytes, offsets_of(0, 2000, 37), loads_pth), 100);
  EXPECT_GT(refused(bytes, offsets_of(bytes.size() - 900, bytes.size(), 13), loads_pth), 50);
  std::vector<ZipEntry> entries = state_dict_entries(weights.tensors);
  const auto loads_pickle = [&](const std::string& damaged) {
    std::vector<ZipEntry> copy = entries;
    copy[0].bytes = damaged;
    EXPECT_TRUE(write_zip(pth, copy).ok());
    return load_weights(pth).ok();
  };
  EXPECT_GT(refused(entries[0].bytes, offsets_of(0, entries[0].bytes.size(), 19), loads_pickle),
            100);
}

TEST(ModelWeights, OfDamagedPublishedPicklesNeverCrash) {
  const Result<std::string> bytes = read_file(kCheckpoints + "pam_k80_1500.pkl");
  if (!bytes.ok()) GTEST_SKIP() << bytes.error().message();
  const auto reads = [](const std::string& damaged) { return read_torch_pickle(damaged).ok(); };
  // The structure between the tensors' values, and the values of one of them.
  std::vector<size_t> offsets = offsets_of(0, 1200, 11);
  for (const auto& [first, last] :
       {std::pair{178900, 181100}, std::pair{447300, 451200}, std::pair{1680900, 1685760}}) {
    const std::vector<size_t> more = offsets_of(first, last, 29);
    offsets.insert(offsets.end(), more.begin(), more.end());
  }
  EXPECT_GT(refused(*bytes, offsets, reads), 200);
}

}  // namespace
}  // namespace pruner
