package isolation

import (
	"fmt"
	"path/filepath"

	"github.com/quernmr/quern/tasktracker/isolation/enter"
)

// keep makes the directories of Config.Kept read-only where a job can write around them. Otherwise it could replace a
// program there, which the daemon's account would then execute outside of namespaces.
func (p *planner) keep() {
	for _, dir := range p.kept {
		if p.pin(dir) && p.hides(dir) == "" {
			p.binds[dir] = enter.Step{Kind: enter.Bind, At: dir, From: dir, Optional: true}
		}
	}
}

// CheckReplaced refuses a file of Config.Replaced that workers see: a cover does not hide the next file with its name.
func (c *Config) CheckReplaced() error {
	p := &planner{links: make(map[string]enter.Step), binds: make(map[string]enter.Step)}
	for _, path := range c.allHidden() {
		real, _, err := p.resolve(path)
		if err != nil {
			return err
		}
		p.hidden = append(p.hidden, real)
	}
	if err := p.system(c); err != nil {
		return err
	}
	for _, file := range c.Replaced {
		dir, _, err := p.resolve(filepath.Dir(file))
		if err != nil {
			return err
		}
		if p.isShown(dir) && p.hides(dir) == "" {
			return fmt.Errorf("%s is in %s, which jobs can read (-isolation, -job-paths): choose another directory, such as /var/log/quern", file, dir)
		}
	}
	return nil
}
