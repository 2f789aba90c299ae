from mrjob.job import MRJob


class MRArchives(MRJob):
    """Counts words by the names that files of archives and of a directory have for them."""

    def mapper_init(self):
        self.names = {}
        for path in 'packed/en/list', 'names.zip/list', 'plain/below/list':
            with open(path) as f:
                self.names.update(line.split() for line in f)

    def mapper(self, _, line):
        for word in line.split():
            self.increment_counter('words', 'read', 1)
            yield self.names.get(word, word), 1

    def reducer(self, name, counts):
        yield name, sum(counts)


if __name__ == '__main__':
    MRArchives.run()
