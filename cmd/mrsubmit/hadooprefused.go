package main

import (
	"fmt"
	"os"
)

// instead returns what answers in place of a command of Hadoop; empty: it is not known.
func instead(words string) string {
	return map[string]string{
		"mapred job -events":                    "mrsubmit trace JOB",
		"mapred job -fail-task":                 "mrsubmit fail-attempt ATTEMPT",
		"mapred job -kill-task":                 "mrsubmit kill-attempt ATTEMPT",
		"mapred job -list-active-trackers":      "mrsubmit cluster",
		"mapred job -list-attempt-ids":          "mrsubmit attempts JOB",
		"mapred job -list-blacklisted-trackers": "mrsubmit cluster",
		"mapred job -logs":                      "mrsubmit logs JOB",
		"mapred job -set-priority":              "mrsubmit set JOB priority=PRIORITY",
		"mapred job -submit":                    "mrsubmit run PROGRAM, or mapred streaming",
		"yarn application -movetoqueue":         "mrsubmit set JOB pool=POOL",
		"yarn node":                             "mrsubmit cluster",
		"yarn rmadmin":                          "mrsubmit cluster",
		"yarn top":                              "mrsubmit top",
		"hadoop distcp":                         "hadoop fs -cp",
		"mapred distcp":                         "hadoop fs -cp",
	}[words]
}

// notAnswered is the error of an option that a command of Hadoop has, but not here.
func notAnswered(command, option string) error {
	if use := instead(command + " " + option); use != "" {
		return usagef("%s is not answered: use %s", option, use)
	}
	return usagef("%s is not answered: docs/hadoop.md has the commands of mrsubmit", option)
}

// launcherOptions takes the options of Hadoop's launchers, which come before the command. It sets HADOOP_CONF_DIR.
func launcherOptions(args []string) (rest []string, configured bool, err error) {
	for len(args) > 0 {
		switch args[0] {
		case "--config":
			if len(args) == 1 {
				return nil, false, fmt.Errorf("no parameter is provided for --config")
			}
			if info, err := os.Stat(args[1]); err != nil || !info.IsDir() {
				return nil, false, fmt.Errorf("cannot find the configuration directory %q of --config", args[1])
			}
			os.Setenv("HADOOP_CONF_DIR", args[1])
			args, configured = args[2:], true
		case "--loglevel":
			args = args[min(2, len(args)):]
		case "--debug":
			args = args[1:]
		default:
			return args, configured, nil
		}
	}
	return args, configured, nil
}
