package testbed

import (
	"fmt"
	"os/exec"
)

// LocalHadoop returns a command that runs a class with Hadoop's local runner, which has as many map and reduce tasks at a
// time as the section has cores. The arguments may begin with more of Hadoop's generic options.
func (b *Bench) LocalHadoop(classpath, class string, args ...string) *exec.Cmd {
	all := []string{"-Xmx4g", "-cp", classpath, class}
	for _, property := range []string{"mapreduce.framework.name=local", "hadoop.tmp.dir=" + b.Path("hadoop-tmp"),
		fmt.Sprintf("mapreduce.local.map.tasks.maximum=%d", b.Cores), fmt.Sprintf("mapreduce.local.reduce.tasks.maximum=%d", b.Cores)} {
		all = append(all, "-D", property)
	}
	return exec.CommandContext(b.Ctx, "java", append(all, args...)...)
}
