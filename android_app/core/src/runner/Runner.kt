package org.ondeviceprofiler.core

import java.io.IOException
import java.net.InetAddress
import java.net.ServerSocket
import java.nio.file.Files
import java.nio.file.Path
import java.nio.file.StandardCopyOption
import kotlin.concurrent.thread

/**
 * One runner process: it listens on the device's loopback, serves one job, and leaves.
 *
 * `storage` is its own folder (token, inputs, journal), `root` where the device's / is; `leave` ends the process.
 */
public class Runner(
    private val storage: Path,
    root: Path,
    private val shell: Shell,
    private val idleTimeoutMs: Int,
    leave: (Int) -> Unit,
) {
    private val office = Office(DeviceFiles(storage, root), shell, leave)

    /** Serve on a free port, and return the process's exit code. Throws IOException where it cannot listen. */
    public fun run(): Int {
        val listener = ServerSocket(0, BACKLOG, InetAddress.getByName("127.0.0.1"))
        thread(isDaemon = true, name = "server") { Server(listener, office, idleTimeoutMs).run() }
        announce(listener.localPort)
        try {
            return serve()
        } finally {
            // A virtual machine that exits waits a while for threads that are inside a system call.
            listener.close()
            office.close()
        }
    }

    private fun serve(): Int {
        office.settled.await()
        val assignment = office.assignment ?: return 0
        try {
            shell.around { Work(assignment.job, office.files, assignment.journal, shell, office.cancelled).run() }
        } catch (error: IOException) {
            System.err.println("the journal's end could not be written: ${reasonOf(error)}")
            return Protocol.EXIT_NO_SPACE
        }
        // The host collects the stop event and says bye; a host that is gone is not waited for long.
        val seconds = assignment.job.onDisconnect.seconds?.takeIf { it != 0.0 } ?: PATIENCE_S
        office.released.await((seconds * 1000).toLong())
        return 0
    }

    /** Write where to find this runner; the rename makes the file whole before it is seen. */
    private fun announce(port: Int) {
        val temporary = storage.resolve(".${Protocol.ADDRESS_FILE}")
        Files.write(temporary, encode(RunnerAddress(port, shell.identity.pid)))
        Files.move(temporary, storage.resolve(Protocol.ADDRESS_FILE), StandardCopyOption.ATOMIC_MOVE)
    }

    private companion object {
        const val BACKLOG = 50
        const val PATIENCE_S = 30.0
    }
}
