from mrjob.job import MRJob


class MRFail(MRJob):
    def mapper(self, _, line):
        if 'violets' in line:
            raise ValueError('bad line: ' + line)
        yield line, 1


if __name__ == '__main__':
    MRFail.run()
