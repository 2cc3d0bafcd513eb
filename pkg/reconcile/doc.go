// Package reconcile brings what follows from one upstream to what a config says: it gathers what stands, decides, acts,
// finalizes and reports. It does so for run; in dry runs for plan, why and get (Preview), and for guard (Count). What is
// watched, and when an upstream's turn has come, is not its concern.
package reconcile
