// Package command is what all commands have in common. A command is a cobra.Command whose options hold the groups of
// flags that it needs, and whose function reads, calls the package that does the work, and prints.
//
//   - IO: standard input, output and error, and the environment. Nothing else of the process is used.
//   - Configs (-c, --set): Valid loads them and prints their errors; Offline and CompileOffline also know kinds from
//     files (--crds).
//   - Connection (flags of kubectl): REST, Dynamic, Namespace. LeaseFlags name the Lease of "corollary run".
//   - Output (-o): the one printer, for objects and for everything else that a command can print as JSON, YAML or
//     KYAML.
//   - Choice, Color, Refuse, WriteNotes, Count: a flag of a few words, colors, errors of configs, notes, texts.
//
// A wrong use is Usagef: one line, with what to write instead, and exit code 1. ExitError ends a command that found
// something with an exit code of its own. RunUntilSignal is the RunE of a command that can be interrupted.
package command
