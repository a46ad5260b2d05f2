package api

import "golang.org/x/sys/unix"

func peerOf(fd int) (uid uint32, pid int, err error) {
	credentials, err := unix.GetsockoptUcred(fd, unix.SOL_SOCKET, unix.SO_PEERCRED)
	if err != nil {
		return 0, 0, err
	}
	return credentials.Uid, int(credentials.Pid), nil
}
