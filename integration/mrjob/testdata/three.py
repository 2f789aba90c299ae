from mrjob.job import MRJob
from mrjob.step import MRStep


class MRThree(MRJob):
    """Counts words without those of a file, then words by count, then counts by first letter."""

    def configure_args(self):
        super().configure_args()
        self.add_file_arg('--stop')

    def steps(self):
        return [
            MRStep(mapper=self.words, combiner=self.add, reducer=self.add),
            MRStep(mapper=self.swap, reducer=self.letters),
            MRStep(reducer=self.add),
        ]

    def words(self, _, line):
        with open(self.options.stop) as f:
            stop = f.read().split()
        for word in line.split():
            if word not in stop:
                self.increment_counter('words', 'kept', 1)
                yield word, 1

    def add(self, key, counts):
        yield key, sum(counts)

    def swap(self, word, n):
        yield n, word

    def letters(self, n, words):
        for word in words:
            yield word[0], n


if __name__ == '__main__':
    MRThree.run()
