// AUC of a sliding window with two order-statistics trees of GNU pb_ds, one per class: the baseline.
//
// pb_ds FILE           labels are 1 and 0, and an event has one score
// pb_ds FILE CLASSES   labels are numbers of classes, and an event has a score of each class: the AUC of each
//                      class against the rest, with two trees for each class
//
// Reads events from a file (k, n as int64; n bytes of labels; n times CLASSES float64 scores), fills a window
// with the first k, and then, for every line "COUNT" on standard input, slides it over so many more and prints
// the microseconds of processor time that took per event (insertion, eviction, AUC). Last a checksum, which keeps the
// optimiser honest. One look-up an event, so ties count for nobody: a tree that counts them half must
// look twice.

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <ext/pb_ds/assoc_container.hpp>
#include <ext/pb_ds/tree_policy.hpp>
#include <limits>
#include <utility>
#include <vector>

namespace pb = __gnu_pbds;

using Key = std::pair<double, std::int64_t>;  // score, then arrival: equal scores stay apart
using OrderStatisticsTree =
    pb::tree<Key, pb::null_type, std::less<Key>, pb::rb_tree_tag, pb::tree_order_statistics_node_update>;

constexpr std::int64_t kBefore = -1;
constexpr std::int64_t kAfter = std::numeric_limits<std::int64_t>::max();

double processor_seconds() {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return double(now.tv_sec) + 1e-9 * double(now.tv_nsec);
}

class SlidingAuc {
 public:
  void insert(bool label, double score, std::int64_t arrival) {
    pairs_ += pairs(label, score);
    (label ? positives_ : negatives_).insert({score, arrival});
  }
  void remove(bool label, double score, std::int64_t arrival) {
    (label ? positives_ : negatives_).erase({score, arrival});
    pairs_ -= pairs(label, score);
  }
  double auc() const {
    return pairs_ / (double(positives_.size()) * double(negatives_.size()));
  }

 private:
  double pairs(bool label, double score) const {
    if (label) return double(negatives_.order_of_key({score, kBefore}));
    return double(positives_.size() - positives_.order_of_key({score, kAfter}));
  }
  OrderStatisticsTree positives_, negatives_;
  double pairs_ = 0.0;
};

int main(int argc, char** argv) {
  if (argc != 2 && argc != 3) return std::fprintf(stderr, "usage: pb_ds FILE [CLASSES]\n"), 2;
  const std::int64_t classes = argc == 3 ? std::atoll(argv[2]) : 1;
  std::FILE* file = std::fopen(argv[1], "rb");
  std::int64_t header[2];
  if (!file || std::fread(header, 8, 2, file) != 2) return 1;
  const std::int64_t k = header[0], n = header[1];
  std::vector<char> label(n);
  std::vector<double> score(n * classes);
  if (std::fread(label.data(), 1, n, file) != std::size_t(n)) return 1;
  if (std::fread(score.data(), 8, n * classes, file) != std::size_t(n * classes)) return 1;
  std::fclose(file);

  std::vector<SlidingAuc> windows(classes);
  const auto is_own = [&](std::int64_t i, std::int64_t c) { return classes == 1 ? label[i] != 0 : label[i] == c; };
  for (std::int64_t i = 0; i < k; ++i)
    for (std::int64_t c = 0; c < classes; ++c) windows[c].insert(is_own(i, c), score[i * classes + c], i);
  double checksum = 0.0;
  long long count = 0;
  for (std::int64_t done = k; std::scanf("%lld", &count) == 1 && done + count <= n; done += count) {
    const double start = processor_seconds();
    for (std::int64_t i = done; i < done + count; ++i) {
      for (std::int64_t c = 0; c < classes; ++c) {
        windows[c].insert(is_own(i, c), score[i * classes + c], i);
        windows[c].remove(is_own(i - k, c), score[(i - k) * classes + c], i - k);
        const double auc = windows[c].auc();
        if (auc == auc) checksum += auc;
      }
    }
    std::printf("%.6f\n", (processor_seconds() - start) / double(count) * 1e6);
    std::fflush(stdout);
  }
  std::fprintf(stderr, "checksum %.12g\n", checksum);
}
