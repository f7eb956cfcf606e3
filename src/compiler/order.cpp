#include "compiler/order.h"

#include <algorithm>
#include <span>
#include <vector>

#include "base/checked.h"
#include "ir/rewrite.h"
#include "passes/memory_effects.h"

namespace rlx {
namespace {

// A node that computes something. Sources and views cost nothing and follow their users.
struct Task {
  int32_t node = -1;
  bool is_elementwise = false;
  std::vector<int32_t> reads;   // buffers, each once
  std::vector<int32_t> writes;  // buffers that begin here
  std::vector<int32_t> before;  // tasks that must come earlier, each once
  std::vector<int32_t> after;   // tasks that must come later
};

// The bytes of one value with its views and in-place updates, where the work segment holds them.
struct Buffer {
  int64_t size_bytes = 0;
  int32_t num_readers = 0;  // tasks, and one for the end of the run when an output is a view of it
};

// What running `task` does to the bytes alive, when `readers_left` counts the readers to come.
struct Change {
  int64_t during = 0, after = 0;  // relative to the bytes alive before
};

Change find_change(const Task& task, std::span<const Buffer> buffers,
                   std::span<const int32_t> readers_left) {
  Change change;
  for (int32_t buffer : task.writes) change.during += buffers[buffer].size_bytes;
  change.after = change.during;
  int64_t reusable = task.is_elementwise ? change.during : 0;
  for (int32_t buffer : task.reads) {
    if (readers_left[buffer] != 1) continue;
    const int64_t size = buffers[buffer].size_bytes;
    change.after -= size;
    if (size == reusable) {
      change.during -= size;
      reusable = 0;
    }
  }
  return change;
}

// The tasks and buffers of a graph, in the order of its nodes.
class Model {
 public:
  Model(const Graph& graph, int64_t alignment_bytes) : graph_(graph), effects_(graph) {
    buffer_of_.assign(graph.values().size(), -1);
    task_of_.assign(graph.nodes().size(), -1);
    std::vector<bool> is_output(graph.values().size(), false);
    for (const GraphOutput& output : graph.outputs()) is_output[output.value.index] = true;
    for (size_t i = 0; i < graph.nodes().size(); ++i) {
      add_node(static_cast<int32_t>(i), alignment_bytes, is_output);
    }
    for (const GraphOutput& output : graph.outputs()) {
      const int32_t buffer = buffer_of_[effects_.root(output.value).index];
      if (buffer >= 0) ++buffers_[buffer].num_readers;
    }
  }

  std::span<const Task> tasks() const { return tasks_; }
  std::span<const Buffer> buffers() const { return buffers_; }

  // The graph with its tasks in the given order. Sources come first, views where they are needed.
  Graph rebuild(std::span<const int32_t> order) const {
    Rewriter rewriter(graph_);
    std::vector<bool> is_done(graph_.nodes().size(), false);
    for (size_t i = 0; i < graph_.nodes().size(); ++i) {
      if (graph_.nodes()[i].op.kind().meaning != Meaning::kSource) continue;
      rewriter.copy(graph_.nodes()[i]);
      is_done[i] = true;
    }
    std::vector<int32_t> pending;
    auto emit = [&](int32_t node) {
      pending.assign(1, node);
      while (!pending.empty()) {
        const int32_t top = pending.back();
        const size_t depth = pending.size();
        for (ValueId input : graph_.node(top).inputs) {
          if (!is_done[graph_.value(input).node]) pending.push_back(graph_.value(input).node);
        }
        if (pending.size() != depth) continue;
        pending.pop_back();
        if (is_done[top]) continue;
        rewriter.copy(graph_.node(top));
        is_done[top] = true;
      }
    };
    for (int32_t task : order) emit(tasks_[task].node);
    for (size_t i = 0; i < graph_.nodes().size(); ++i) emit(static_cast<int32_t>(i));
    return rewriter.finish();
  }

 private:
  void add_node(int32_t index, int64_t alignment_bytes, const std::vector<bool>& is_output) {
    const Node& node = graph_.node(index);
    const Meaning meaning = node.op.kind().meaning;
    if (meaning == Meaning::kSource || meaning == Meaning::kLayout) return;
    const auto id = static_cast<int32_t>(tasks_.size());
    task_of_[index] = id;
    Task& task = tasks_.emplace_back();
    task.node = index;
    task.is_elementwise = meaning == Meaning::kScalar;
    for (ValueId input : node.inputs) {
      const ValueId root = effects_.root(input);
      add_dependencies(task, root, index);
      const int32_t buffer = buffer_of_[root.index];
      if (buffer < 0 || std::find(task.reads.begin(), task.reads.end(), buffer) != task.reads.end())
        continue;
      task.reads.push_back(buffer);
      ++buffers_[buffer].num_readers;
    }
    for (ValueId output : node.outputs) {
      // What is written in place has no bytes of its own; an output of the graph lies in io.
      if (effects_.root(output) != output || is_output[output.index]) continue;
      buffer_of_[output.index] = static_cast<int32_t>(buffers_.size());
      task.writes.push_back(buffer_of_[output.index]);
      const int64_t size = upper_bound_bytes(graph_.type(output), graph_.symbols());
      buffers_.push_back({align_up(size, alignment_bytes), 0});
    }
    for (int32_t earlier : task.before) tasks_[earlier].after.push_back(id);
  }

  // `task` reads or writes the bytes of `root`: it comes after the node that made them and after
  // the writes in place so far, and a write in place also after the reads so far.
  void add_dependencies(Task& task, ValueId root, int32_t index) {
    auto depend = [&](int32_t earlier) {
      if (earlier < 0 || earlier == task_of_[index]) return;
      if (std::find(task.before.begin(), task.before.end(), earlier) == task.before.end()) {
        task.before.push_back(earlier);
      }
    };
    depend(task_of_[graph_.value(root).node]);
    if (accesses_.size() <= static_cast<size_t>(root.index)) accesses_.resize(root.index + 1);
    Accesses& accesses = accesses_[root.index];
    depend(accesses.last_writer);
    const int in_place = graph_.node(index).op.kind().in_place_input;
    if (in_place >= 0 && effects_.root(graph_.node(index).inputs[in_place]) == root) {
      for (int32_t reader : accesses.readers_since) depend(reader);
      accesses.last_writer = task_of_[index];
      accesses.readers_since.clear();
    } else {
      accesses.readers_since.push_back(task_of_[index]);
    }
  }

  struct Accesses {
    int32_t last_writer = -1;  // in place
    std::vector<int32_t> readers_since;
  };

  const Graph& graph_;
  const MemoryEffects effects_;
  std::vector<Task> tasks_;
  std::vector<Buffer> buffers_;
  std::vector<int32_t> buffer_of_;  // by root value
  std::vector<int32_t> task_of_;    // by node
  std::vector<Accesses> accesses_;  // by root value
};

// The bytes alive along an order.
struct Profile {
  std::vector<int64_t> before, during;  // by position
  int64_t peak = 0;
  size_t peak_position = 0;
};

Profile make_profile(const Model& model, std::span<const int32_t> order) {
  std::vector<int32_t> readers_left;
  for (const Buffer& buffer : model.buffers()) readers_left.push_back(buffer.num_readers);
  Profile profile;
  int64_t alive = 0;
  for (size_t i = 0; i < order.size(); ++i) {
    const Task& task = model.tasks()[order[i]];
    const Change change = find_change(task, model.buffers(), readers_left);
    profile.before.push_back(alive);
    profile.during.push_back(alive + change.during);
    if (profile.during.back() > profile.peak) {
      profile.peak = profile.during.back();
      profile.peak_position = i;
    }
    alive += change.after;
    for (int32_t buffer : task.reads) --readers_left[buffer];
  }
  return profile;
}

uint64_t mix(uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

// Looks for a better order of a window of tasks, the rest staying where it is: a beam over the sets
// of tasks already run, which keeps those with the lowest peak, and among equals the fewest bytes
// alive.
class WindowSearch {
 public:
  // `readers_left` counts, by buffer, the tasks from the window on.
  WindowSearch(const Model& model, std::span<const int32_t> window, int64_t alive_before,
               std::span<const int32_t> readers_left)
      : window_(window) {
    State start;
    start.alive = alive_before;
    std::vector<int32_t> position(model.tasks().size(), -1);
    for (size_t i = 0; i < window.size(); ++i) position[window[i]] = static_cast<int32_t>(i);
    // The window's own numbers for tasks and buffers keep the states small.
    std::vector<int32_t> local(model.buffers().size(), -1);
    auto localize = [&](std::vector<int32_t>& buffers) {
      for (int32_t& buffer : buffers) {
        if (local[buffer] < 0) {
          local[buffer] = static_cast<int32_t>(buffers_.size());
          buffers_.push_back(model.buffers()[buffer]);
          start.readers_left.push_back(readers_left[buffer]);
        }
        buffer = local[buffer];
      }
    };
    for (size_t i = 0; i < window.size(); ++i) {
      Task task = model.tasks()[window[i]];
      localize(task.reads);
      localize(task.writes);
      std::erase_if(task.after, [&](int32_t later) { return position[later] < 0; });
      for (int32_t& later : task.after) later = position[later];
      const auto waits = static_cast<int32_t>(
          std::count_if(task.before.begin(), task.before.end(),
                        [&](int32_t earlier) { return position[earlier] >= 0; }));
      start.waits_for.push_back(waits);
      if (waits == 0) start.ready.push_back(static_cast<int32_t>(i));
      tasks_.push_back(std::move(task));
    }
    beam_.push_back(std::move(start));
  }

  // The order found when its peak is under `peak`; takes what it looks at from `effort`.
  std::optional<std::vector<int32_t>> run(int64_t peak, int64_t* effort) {
    for (size_t step = 0; step < window_.size(); ++step) {
      if (!advance(peak, effort)) return std::nullopt;
    }
    std::vector<int32_t> order;
    for (int32_t link = beam_[0].last; link >= 0; link = trail_[link].previous) {
      order.push_back(window_[trail_[link].task]);
    }
    std::reverse(order.begin(), order.end());
    return order;
  }

 private:
  static constexpr size_t kBeamWidth = 12;

  struct State {
    int64_t peak = 0, alive = 0;
    uint64_t hash = 0;                      // of the set of tasks run
    int32_t last = -1;                      // in trail_
    std::vector<int32_t> ready, waits_for;  // window positions; by window position
    std::vector<int32_t> readers_left;      // by buffer
  };
  struct Step {
    int32_t task, previous;
  };
  struct Candidate {
    int64_t peak, alive;
    uint64_t hash;
    size_t state;
    int32_t task;
  };

  bool advance(int64_t limit, int64_t* effort) {
    std::vector<Candidate> candidates;
    for (size_t s = 0; s < beam_.size(); ++s) {
      const State& state = beam_[s];
      for (int32_t task : state.ready) {
        --*effort;
        const Change change = find_change(tasks_[task], buffers_, state.readers_left);
        const int64_t peak = std::max(state.peak, state.alive + change.during);
        if (peak >= limit) continue;
        candidates.push_back({peak, state.alive + change.after,
                              state.hash ^ mix(static_cast<uint64_t>(task)), s, task});
      }
    }
    if (candidates.empty() || *effort < 0) return false;
    std::sort(candidates.begin(), candidates.end(), [](const Candidate& a, const Candidate& b) {
      if (a.peak != b.peak) return a.peak < b.peak;
      if (a.alive != b.alive) return a.alive < b.alive;
      if (a.task != b.task) return a.task < b.task;
      return a.state < b.state;
    });
    // A state is copied for each that is kept, which costs as much as looking at a few choices.
    *effort -= static_cast<int64_t>(kBeamWidth * window_.size() / 32);
    std::vector<State> next;
    std::vector<uint64_t> seen;
    for (const Candidate& candidate : candidates) {
      if (next.size() == kBeamWidth) break;
      if (std::find(seen.begin(), seen.end(), candidate.hash) != seen.end()) continue;
      seen.push_back(candidate.hash);
      next.push_back(extend(candidate));
    }
    beam_ = std::move(next);
    return true;
  }

  State extend(const Candidate& candidate) {
    State state = beam_[candidate.state];
    state.peak = candidate.peak;
    state.alive = candidate.alive;
    state.hash = candidate.hash;
    trail_.push_back({candidate.task, state.last});
    state.last = static_cast<int32_t>(trail_.size()) - 1;
    state.ready.erase(std::find(state.ready.begin(), state.ready.end(), candidate.task));
    for (int32_t buffer : tasks_[candidate.task].reads) --state.readers_left[buffer];
    for (int32_t later : tasks_[candidate.task].after) {
      if (--state.waits_for[later] == 0) state.ready.push_back(later);
    }
    return state;
  }

  const std::span<const int32_t> window_;
  std::vector<Task> tasks_;  // by window position; their buffers and successors are the window's
  std::vector<Buffer> buffers_;
  std::vector<State> beam_;
  std::vector<Step> trail_;
};

}  // namespace

std::optional<Graph> find_leaner_order(const Graph& graph, int64_t alignment_bytes,
                                       int64_t effort_nodes) {
  const Model model(graph, alignment_bytes);
  std::vector<int32_t> order(model.tasks().size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int32_t>(i);
  if (order.empty()) return std::nullopt;
  Profile profile = make_profile(model, order);
  const int64_t given_peak = profile.peak;

  // The peak alone decides, so each window lies around it, and grows while it does not help.
  for (size_t size = 16; effort_nodes > 0;) {
    const size_t begin = profile.peak_position - std::min(profile.peak_position, size / 2);
    const size_t end = std::min(order.size(), begin + size);
    std::vector<int32_t> readers_left;
    for (const Buffer& buffer : model.buffers()) readers_left.push_back(buffer.num_readers);
    for (size_t i = 0; i < begin; ++i) {
      for (int32_t buffer : model.tasks()[order[i]].reads) --readers_left[buffer];
    }
    const std::span<const int32_t> window = std::span(order).subspan(begin, end - begin);
    const std::optional<std::vector<int32_t>> better =
        WindowSearch(model, window, profile.before[begin], readers_left)
            .run(profile.peak, &effort_nodes);
    effort_nodes -= static_cast<int64_t>(order.size() / 16 + 1);
    if (better) {
      std::copy(better->begin(), better->end(), order.begin() + static_cast<ptrdiff_t>(begin));
      profile = make_profile(model, order);
    } else if (end - begin == order.size()) {
      break;
    } else {
      size *= 4;
    }
  }
  if (profile.peak >= given_peak) return std::nullopt;
  return model.rebuild(order);
}

}  // namespace rlx
