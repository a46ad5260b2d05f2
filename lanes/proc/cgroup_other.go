//go:build !linux

package proc

import "errors"

func isCgroup2(string) bool                         { return false }
func newParentGroup(Identity, int64) (group, error) { return group{}, errors.ErrUnsupported }
func leftGroups() []group                           { return nil }
func (g group) child(string) (group, error)         { return group{}, errors.ErrUnsupported }
func (g group) kill() []int                         { return nil }
func (g group) empty() bool                         { return true }
func (g group) remove()                             {}
func (g group) holdsSelf() bool                     { return false }
