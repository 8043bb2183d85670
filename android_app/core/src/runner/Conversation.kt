package org.ondeviceprofiler.core

import java.io.IOException
import java.nio.file.Files
import java.security.MessageDigest
import kotlin.concurrent.thread

/** One connection, from its first line to its end. */
internal class Conversation(private val line: Line, private val office: Office, private val gatherMs: Long) {
    /** Answer until the other end is gone or says something that cannot be read. */
    fun run() {
        try {
            if (greet()) serve()
        } catch (error: InvalidRecord) {
            tell(Refused(RefusalCode.REQUEST, error.message ?: "not understood"))
        } catch (_: IOException) {
            // The host is gone; the disconnect rule takes over.
        } finally {
            office.hostWent(line)
            line.close()
        }
    }

    private fun serve() {
        office.hostCame(line)
        line.waitWithoutLimit()
        while (true) {
            val request = line.read() ?: return
            answer(request)
            if (request == Bye) return
        }
    }

    private fun greet(): Boolean {
        val refusal = lackOf(line.read())
        line.send(refusal ?: hello())
        return refusal == null
    }

    private fun hello(): RunnerHello {
        val identity = office.shell.identity
        return RunnerHello(
            Protocol.VERSION,
            RUNNER_VERSION,
            identity.platform,
            identity.engines,
            identity.virtual,
            identity.pid,
            identity.synthetic,
        )
    }

    private fun lackOf(request: Request?): Refused? {
        if (request !is HostHello) return Refused(RefusalCode.REQUEST, "the first line must be hello")
        if (request.protocolVersion != Protocol.VERSION) {
            val versions = "the runner speaks ${Protocol.VERSION}, the host ${request.protocolVersion}"
            return Refused(RefusalCode.PROTOCOL_VERSION, "$versions: update the older")
        }
        val token = Files.readAllBytes(office.files.storage.resolve(Protocol.TOKEN_FILE)).decodeToString().trim()
        // Takes as long whatever differs, so that nobody learns a token by trying.
        val same = MessageDigest.isEqual(token.toByteArray(), request.token.toByteArray())
        return if (same) null else Refused(RefusalCode.TOKEN, "not the token of this session")
    }

    private fun answer(request: Request) {
        when (request) {
            is HostHello -> line.send(Refused(RefusalCode.REQUEST, "hello comes once"))
            is Inspect -> line.send(Inspection(request.paths.map(::receipt)))
            is Start -> start(request.job)
            is Replay -> replay(request)
            Cancel -> office.cancelled.set()
            Bye -> {
                office.cancelled.set()
                office.release()
            }
        }
    }

    private fun receipt(path: String): Receipt {
        val file = office.files.locate(path)
        if (!Files.isRegularFile(file)) return Receipt(path, null, null)
        return Receipt(path, Files.size(file), sha256Of(file))
    }

    private fun start(job: Job) {
        val refusal = lackFor(job)
        if (refusal != null) return line.send(refusal)
        line.send(Accepted(job.jobId))
        follow(fromSeq = 0)
    }

    private fun lackFor(job: Job): Refused? {
        if (job.engine !in office.shell.identity.engines) {
            return Refused(RefusalCode.JOB, "this runner has no engine '${job.engine}', which this bundle needs")
        }
        val free =
            try {
                office.take(job)
            } catch (error: IOException) {
                return Refused(RefusalCode.JOB, "cannot open the journal: ${reasonOf(error)}")
            }
        val busy = "this runner serves one job in its life; start another process"
        return if (free) null else Refused(RefusalCode.BUSY, busy)
    }

    private fun replay(request: Replay) {
        if (office.assignment?.job?.jobId != request.jobId) {
            return line.send(Refused(RefusalCode.UNKNOWN_JOB, "no job ${request.jobId} here"))
        }
        line.send(Accepted(request.jobId))
        follow(request.fromSeq)
    }

    /** Send the journal's lines as it grows, on a thread of its own: a slow host never holds up a timed window. */
    private fun follow(fromSeq: Long) {
        val journal = office.assignment?.journal ?: return
        thread(isDaemon = true, name = "journal") {
            try {
                JournalSender(journal, fromSeq, gatherMs, line::send).run()
            } catch (_: IOException) {
                // The other end is gone.
            }
        }
    }

    private fun tell(refusal: Refused) {
        try {
            line.send(refusal)
        } catch (_: IOException) {
            // The other end is gone.
        }
    }
}
