package api

import "golang.org/x/sys/unix"

func peerOf(fd int) (uid uint32, pid int, err error) {
	credentials, err := unix.GetsockoptXucred(fd, unix.SOL_LOCAL, unix.LOCAL_PEERCRED)
	if err != nil {
		return 0, 0, err
	}
	if pid, err = unix.GetsockoptInt(fd, unix.SOL_LOCAL, unix.LOCAL_PEERPID); err != nil {
		pid = 0 // whether it lives is not known then
	}
	return credentials.Uid, pid, nil
}
