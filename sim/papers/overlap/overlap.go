// Package overlap reproduces the simulations of Lin, Zhang, Wierman and Tan, Joint
// Optimization of Overlapping Phases in MapReduce (2013), section 5.3: millions of jobs
// through the overlapping tandem queue of section 2.1.
package overlap
