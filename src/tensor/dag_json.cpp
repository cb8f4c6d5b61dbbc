// The JSON form of a compute DAG, as in files of tasks: one object a stage, bodies as text.
#include <algorithm>

#include "tensor/affine.h"
#include "tensor/compute_dag.h"
#include "tensor/parse_expr.h"
#include "tensor/scalar_ops.h"

namespace pruner {
namespace {

constexpr int64_t kMaxExtent = 1'000'000'000;  // limit of an axis; a file may ask for anything
constexpr size_t kMostStages = 1000;           // walks follow a chain of stages recursively

// Reads the stages of one list; the stages read so far are the scope of the following stages.
class DagReader {
 public:
  Result<Unit> add(const Json& json) {
    Stage stage;
    TRY_ASSIGN(stage.name, json_get<std::string>(json, "op"));
    if (!is_name(stage.name)) return Error("\"", stage.name, "\" is no name of a tensor");
    if (scope_.tensors.contains(stage.name)) return Error("a second stage of this name");
    TRY_ASSIGN(const std::string kind, json_get<std::string>(json, "kind"));
    if (kind == "placeholder") {
      TRY(read_placeholder(json, stage));
    } else if (kind == "compute") {
      TRY(read_compute(json, stage));
    } else {
      return Error("kind is \"", kind, "\", expected placeholder or compute");
    }
    scope_.tensors[stage.name] = StageId{dag_.size()};
    dag_.stages.push_back(std::move(stage));
    return Unit{};
  }
  Result<ComputeDag> finish() {
    if (dag_.outputs().empty()) return Error("no stage has \"output\": true");
    IdMap<StageId, bool> read;
    read.resize(static_cast<size_t>(dag_.size()), false);
    for (int s = 0; s < dag_.size(); ++s)
      for (const StageId producer : dag_.producers(StageId{s})) read[producer] = true;
    for (int s = 0; s < dag_.size(); ++s) {
      const Stage& stage = dag_[StageId{s}];
      if (!stage.is_placeholder() && !stage.output && !read[StageId{s}])
        return Error("stage ", stage.name, ": is no output, and no stage reads it");
    }
    TRY(check_sizes(dag_));
    return std::move(dag_);
  }

 private:
  Result<Unit> read_placeholder(const Json& json, Stage& stage) {
    TRY_ASSIGN(const auto shape, json_get<std::vector<int64_t>>(json, "shape"));
    for (int64_t extent : shape) {
      TRY(check_extent(extent));
      stage.axes.push_back({"ax" + std::to_string(stage.axes.size()), extent});
    }
    TRY_ASSIGN(stage.dtype, read_dtype(json));
    stage.constant = json.value("constant", Json()) == Json(true);
    if (json.contains("index_bound")) {
      TRY_ASSIGN(stage.index_bound, json_get<int64_t>(json, "index_bound"));
    }
    return Unit{};
  }

  Result<Unit> read_compute(const Json& json, Stage& stage) {
    scope_.variables.clear();
    TRY(read_axes(json, "axis", stage.axes));
    TRY(read_axes(json, "reduce_axis", stage.reduce_axes));
    TRY_ASSIGN(const auto texts, json_get<std::vector<std::string>>(json, "body"));
    if (texts.size() != 1) return Error("body has ", texts.size(), " texts, expected 1");
    Result<ParsedBody> body = parse_body(texts[0], scope_);
    if (!body.ok()) return Error("body, ", body.error().message());
    stage.combiner = body->combiner;
    if (stage.is_reduction() == stage.reduce_axes.empty()) {
      return Error("a reduction and only a reduction has reduce axes");
    }
    stage.body = body->source;
    stage.dtype = stage.body->dtype;
    // A stage's own type may be another than its body's.
    if (json.contains("dtype")) {
      TRY_ASSIGN(stage.dtype, read_dtype(json));
      stage.body = cast(stage.dtype, stage.body);
    }
    if (json.contains("tag")) {
      TRY_ASSIGN(stage.tag, json_get<std::string>(json, "tag"));
    }
    stage.output = json.value("output", Json()) == Json(true);
    if (json.contains("attrs")) TRY(read_attributes(json["attrs"], stage));
    return Unit{};
  }

  Result<Unit> read_attributes(const Json& attrs, Stage& stage) {
    if (attrs.contains("layout_free_placeholders")) {
      using Names = std::vector<std::string>;
      TRY_ASSIGN(const Names names, json_get<Names>(attrs, "layout_free_placeholders"));
      for (const std::string& name : names) {
        const auto tensor = scope_.tensors.find(name);
        if (tensor == scope_.tensors.end() || !dag_[tensor->second].is_placeholder()) {
          return Error("layout free \"", name, "\" is no earlier placeholder");
        }
        dag_[tensor->second].constant = true;  // only a weight can be repacked ahead of time
        stage.layout_free.push_back(tensor->second);
      }
    }
    if (attrs.contains("auto_scheduler_simplify_const_tensor_indices")) {
      TRY_ASSIGN(stage.const_index_axes,
                 json_get<std::vector<std::string>>(
                     attrs, "auto_scheduler_simplify_const_tensor_indices"));
    }
    return Unit{};
  }

  static Result<DType> read_dtype(const Json& json) {
    TRY_ASSIGN(const std::string name, json_get<std::string>(json, "dtype"));
    const std::optional<DType> dtype = parse_dtype(name);
    if (!dtype) return Error("unknown type \"", name, "\"");
    return *dtype;
  }

  static Result<Unit> check_extent(int64_t extent) {
    if (extent < 1 || extent > kMaxExtent) {
      return Error("extent ", extent, ", expected 1 to ", kMaxExtent);
    }
    return Unit{};
  }

  Result<Unit> read_axes(const Json& json, const char* key, std::vector<Iterator>& axes) {
    TRY_ASSIGN(const auto pairs, json_get<std::vector<Json>>(json, key));
    for (const Json& pair : pairs) {
      if (!pair.is_array() || pair.size() != 2 || !pair[0].is_string()) {
        return Error(key, " is not a list of [name, extent]");
      }
      const auto name = pair[0].get<std::string>();
      if (!is_name(name)) return Error("\"", name, "\" is no name of an axis");
      TRY_ASSIGN(const int64_t extent, read_extent(name, pair[1]));
      const auto id = static_cast<int32_t>(scope_.variables.size());
      if (!scope_.variables.emplace(name, make_var(VarId{id}, name)).second) {
        return Error("two axes are called ", name);
      }
      ranges_.resize(static_cast<size_t>(id));
      ranges_.push_back({0, extent - 1});
      axes.push_back({name, extent});
    }
    return Unit{};
  }

  // Adaptive pooling writes a window's extent as arithmetic on the axes; it must be one number.
  Result<int64_t> read_extent(const std::string& name, const Json& json) {
    int64_t extent = 0;
    if (json.is_number_integer()) {
      extent = json.get<int64_t>();
    } else if (json.is_string()) {
      const auto text = json.get<std::string>();
      Result<Expr> parsed = parse_expr(text, scope_);
      if (!parsed.ok()) return Error("extent of ", name, ", ", parsed.error().message());
      const Expr simple = simplify(*parsed, ranges_);
      const int64_t* value = as_int(simple);
      if (!value) return Error("extent of ", name, " differs from point to point: ", text);
      extent = *value;
    } else {
      return Error("extent of ", name, " is no whole number");
    }
    TRY(check_extent(extent));
    return extent;
  }

  ComputeDag dag_;
  ExprScope scope_{&dag_, {}, {}};
  std::vector<Range> ranges_;  // ranges of the variables of the stage being read
};

}  // namespace

Result<ComputeDag> dag_from_json(const Json& dag) {
  if (!dag.is_array()) return Error("a dag is a list of stages");
  if (dag.size() > kMostStages)
    return Error("a dag of ", dag.size(), " stages, expected at most ", kMostStages);
  DagReader reader;
  for (size_t i = 0; i < dag.size(); ++i) {
    Result<Unit> added = reader.add(dag[i]);
    if (added.ok()) continue;
    const bool named = dag[i].is_object() && dag[i].contains("op") && dag[i]["op"].is_string();
    return Error("stage ",
                 named ? dag[i]["op"].get<std::string>() : std::to_string(i),
                 ": ",
                 added.error().message());
  }
  return reader.finish();
}

static Json axes_to_json(const std::vector<Iterator>& axes) {
  Json json = Json::array();
  for (const Iterator& axis : axes) json.push_back({axis.name, axis.extent});
  return json;
}

static std::string body_text(const Stage& stage, const ComputeDag& dag) {
  const std::string source = print(stage.body, [&](StageId id) { return dag[id].name; });
  if (!stage.is_reduction()) return source;
  std::string axes;
  for (const Iterator& axis : stage.reduce_axes) axes += (axes.empty() ? "" : ", ") + axis.name;
  return "reduce[" + std::string(facts_of(stage.combiner).json) + "](" + source + "; axis=[" +
         axes + "]; value_index=0)";
}

static Json attributes_to_json(const Stage& stage, const ComputeDag& dag) {
  Json attrs = Json::object();
  for (StageId id : stage.layout_free) attrs["layout_free_placeholders"].push_back(dag[id].name);
  if (!stage.const_index_axes.empty()) {
    attrs["auto_scheduler_simplify_const_tensor_indices"] = stage.const_index_axes;
  }
  return attrs;
}

static Json stage_to_json(const Stage& stage, const ComputeDag& dag) {
  Json json = {{"op", stage.name}};
  json["kind"] = stage.is_placeholder() ? "placeholder" : "compute";
  if (stage.is_placeholder()) {
    json["shape"] = stage.shape();
    json["dtype"] = dtype_name(stage.dtype);
    if (stage.constant) json["constant"] = true;
    if (stage.index_bound > 0) json["index_bound"] = stage.index_bound;
    return json;
  }
  json["tag"] = stage.tag;
  if (stage.dtype != DType::kFloat32) json["dtype"] = dtype_name(stage.dtype);
  json["axis"] = axes_to_json(stage.axes);
  json["reduce_axis"] = axes_to_json(stage.reduce_axes);
  json["body"] = {body_text(stage, dag)};
  json["attrs"] = attributes_to_json(stage, dag);
  json["output"] = stage.output;
  return json;
}

Json dag_to_json(const ComputeDag& dag) {
  Json json = Json::array();
  for (const Stage& stage : dag.stages) json.push_back(stage_to_json(stage, dag));
  return json;
}

}  // namespace pruner
