package org.ondeviceprofiler.core

import java.nio.file.Files
import java.util.concurrent.TimeUnit
import org.junit.After
import org.junit.Assert.assertEquals
import org.junit.Assert.assertFalse
import org.junit.Assert.assertTrue
import org.junit.Before
import org.junit.Rule
import org.junit.Test
import org.junit.rules.TemporaryFolder

class ServerTest {
    @get:Rule
    val folder = TemporaryFolder()

    private lateinit var runner: RunnerInside
    private lateinit var job: Job

    @Before
    fun begin() {
        job = smallJob(folder.root.toPath())
        runner = RunnerInside(folder.root.toPath())
    }

    @After
    fun end() = runner.close()

    private fun refusal(reply: Reply): Pair<RefusalCode, String> = (reply as Refused).let { it.code to it.reason }

    private fun RawHost.start(): RawHost {
        say(Start(job))
        assertEquals(Accepted(job.jobId), hearsReply())
        return this
    }

    private fun RawHost.eventsToStop(): List<Event> {
        val events = arrayListOf(hearsEvent())
        while (events.last() !is Stop) events.add(hearsEvent())
        return events
    }

    @Test
    fun `a hello with the token is answered with what the runner is`() {
        RawHost(runner.port).use { host ->
            host.say(HostHello(Protocol.VERSION, "test", RawHost.TOKEN))
            val hello = host.hearsReply() as RunnerHello
            assertEquals(RunnerHello(1, RUNNER_VERSION, "android", mapOf("onnxruntime" to "1"), true, 4711, true), hello)
        }
    }

    @Test
    fun `a wrong token is refused and hung up on`() {
        for (token in listOf("", "the-toke", "the-tokem", "the-token-and-more", "thé-token")) {
            RawHost(runner.port).use { host ->
                host.say(HostHello(Protocol.VERSION, "test", token))
                assertEquals(RefusalCode.TOKEN to "not the token of this session", refusal(host.hearsReply()))
                assertTrue(host.hearsNothingMore())
            }
        }
    }

    @Test
    fun `another protocol version is refused with both versions`() {
        RawHost(runner.port).use { host ->
            host.say(HostHello(2, "test", RawHost.TOKEN))
            val words = "the runner speaks 1, the host 2: update the older"
            assertEquals(RefusalCode.PROTOCOL_VERSION to words, refusal(host.hearsReply()))
        }
    }

    @Test
    fun `a host that does not greet, or greets twice, is refused`() {
        RawHost(runner.port).use { host ->
            host.say(Inspect(emptyList()))
            assertEquals("the first line must be hello", refusal(host.hearsReply()).second)
        }
        runner.host().use { host ->
            host.say(HostHello(Protocol.VERSION, "test", RawHost.TOKEN))
            assertEquals("hello comes once", refusal(host.hearsReply()).second)
            host.say(Inspect(emptyList()))
            assertEquals(Inspection(emptyList()), host.hearsReply())
        }
    }

    @Test
    fun `a line that is no request is refused and hung up on`() {
        val lines = Examples.lines("requests_invalid.jsonl").map { it.decodeToString() } + listOf("", "GET / HTTP/1.1", "{\"request\":")
        for (line in lines) {
            RawHost(runner.port).use { host ->
                host.say(line)
                val (code, reason) = refusal(host.hearsReply())
                assertEquals(RefusalCode.REQUEST, code)
                assertTrue(reason, reason.startsWith("the host: not a valid Request: "))
                assertTrue(host.hearsNothingMore())
            }
        }
    }

    @Test
    fun `a line longer than the protocol allows is refused`() {
        RawHost(runner.port).use { host ->
            host.say(" ".repeat(Protocol.MAX_LINE_BYTES))
            assertEquals("the host: a line of more than 1048576 bytes", refusal(host.hearsReply()).second)
        }
    }

    @Test
    fun `inspect tells of each file what the runner sees`() {
        val path = folder.root.toPath().resolve("abc")
        Files.write(path, "abc".toByteArray())
        runner.host().use { host ->
            host.say(Inspect(listOf("abc", path.toString(), "nothing", "bundle")))
            val hash = sha256Of(path)
            val there = listOf("abc", path.toString()).map { Receipt(it, 3, hash) }
            val missing = listOf("nothing", "bundle").map { Receipt(it, null, null) }
            assertEquals(Inspection(there + missing), host.hearsReply())
        }
    }

    @Test
    fun `the events of a job follow its start and are those of the journal`() {
        runner.letGo()
        runner.host().use { host ->
            val events = host.start().eventsToStop()
            val written = Files.readAllLines(folder.root.toPath().resolve("events.jsonl"))
            assertEquals(written, events.map { it.toJson().write() })
            assertEquals(Outcome.COMPLETED, (events.last() as Stop).outcome)
        }
    }

    @Test
    fun `a second job is refused while the first goes on, and after it`() {
        runner.host().use { host ->
            host.start()
            runner.awaitDecoding()
            runner.host().use { second ->
                second.say(Start(job))
                val words = "this runner serves one job in its life; start another process"
                assertEquals(RefusalCode.BUSY to words, refusal(second.hearsReply()))
            }
        }
    }

    @Test
    fun `a job for an engine that is not here is refused, and so is one whose journal cannot be opened`() {
        runner.host().use { host ->
            host.say(Start(job.copy(engine = "coreml")))
            assertTrue("no engine 'coreml'" in refusal(host.hearsReply()).second)
            Files.createFile(folder.root.toPath().resolve("events.jsonl"))
            host.say(Start(job))
            assertTrue(refusal(host.hearsReply()).second.startsWith("cannot open the journal: "))
        }
    }

    @Test
    fun `a replay gives exactly the events from its number on, and only of this job`() {
        runner.letGo()
        runner.host().use { host ->
            val events = host.start().eventsToStop()
            host.say(Replay(job.jobId, 3))
            assertEquals(Accepted(job.jobId), host.hearsReply())
            assertEquals(events.drop(3), host.eventsToStop())
            host.say(Replay("another", 0))
            assertEquals(RefusalCode.UNKNOWN_JOB to "no job another here", refusal(host.hearsReply()))
        }
    }

    @Test
    fun `a cancel interrupts the job before its next call`() {
        runner.host().use { host ->
            host.start()
            runner.awaitDecoding()
            host.say(Cancel)
            host.say(Inspect(emptyList())) // answered only once the cancel was heard
            generateSequence { host.hears() }.first { "reply" in it }
            runner.letGo()
            assertEquals(listOf<Any?>(Outcome.INTERRUPTED, "cancelled"), runner.stopEvent().let { listOf(it.outcome, it.reason) })
        }
    }

    @Test
    fun `bye lets the runner go, and so does idleness`() {
        runner.host().use { host ->
            host.say(Bye)
            assertTrue(runner.office.released.await(20_000))
        }
    }

    @Test
    fun `a runner without a host leaves after its idle time`() {
        assertTrue(runner.office.released.await(20_000))
    }

    @Test
    fun `a host without a job is not taken for idle, one that leaves without a job is not waited for`() {
        runner.host().use { host ->
            assertFalse(runner.office.released.await(200))
            host.say(Inspect(emptyList()))
            assertEquals(Inspection(emptyList()), host.hearsReply())
        }
        assertTrue(runner.office.released.await(20_000))
    }

    @Test
    fun `a host that goes away stops the job after the time in its rule`() {
        runner.host().use { it.start() }
        runner.awaitDecoding()
        runner.clock.awaitDelayed(2)
        runner.clock.sleepNs(4 * NS_PER_S)
        assertFalse(runner.office.cancelled.isSet)
        runner.clock.sleepNs(NS_PER_S)
        assertTrue(runner.office.cancelled.isSet)
        runner.letGo()
        assertEquals(Outcome.INTERRUPTED, runner.stopEvent().outcome)
    }

    @Test
    fun `a call that does not return after the host went away ends with the process`() {
        runner.host().use { it.start() }
        runner.awaitDecoding()
        runner.clock.awaitDelayed(2)
        runner.clock.sleepNs(11 * NS_PER_S)
        assertEquals(Protocol.EXIT_HOST_GONE, runner.left.poll(20, TimeUnit.SECONDS))
    }

    @Test
    fun `a host that comes back in time finds the job going on`() {
        val heard = runner.host().use { host -> host.start().hearsEvent().stamp.seq }
        runner.awaitDecoding()
        runner.clock.awaitDelayed(2)
        runner.host().use { host ->
            runner.clock.sleepNs(100 * NS_PER_S)
            assertFalse(runner.office.cancelled.isSet)
            assertTrue(runner.left.isEmpty())
            runner.letGo()
            host.say(Replay(job.jobId, heard + 1))
            assertEquals(Accepted(job.jobId), host.hearsReply())
            val events = host.eventsToStop()
            assertEquals(heard + 1, events.first().stamp.seq)
            assertEquals(Outcome.COMPLETED, (events.last() as Stop).outcome)
        }
    }

    @Test
    fun `an untethered job is finished without its host`() {
        job = job.copy(onDisconnect = OnDisconnect(DisconnectKind.FINISH_THEN_EXIT, null))
        runner.host().use { it.start() }
        runner.letGo()
        assertEquals(Outcome.COMPLETED, runner.stopEvent().outcome)
    }

    @Test
    fun `a host that comes back takes the place of a connection that broke unnoticed`() {
        runner.host().use { former ->
            former.start()
            runner.awaitDecoding()
            runner.host().use { host ->
                assertTrue(generateSequence { former.hearsNothingMore() }.first { it })
                host.say(Inspect(emptyList()))
                assertEquals(Inspection(emptyList()), host.hearsReply())
                assertFalse(runner.office.cancelled.isSet)
            }
        }
    }

    @Test
    fun `a stranger changes nothing, whether he is silent or knocks while the host is away`() {
        RawHost(runner.port).use {
            runner.host().use { host ->
                host.start()
                runner.awaitDecoding()
            }
            runner.clock.awaitDelayed(2)
            RawHost(runner.port).use { stranger ->
                stranger.say(HostHello(Protocol.VERSION, "test", "wrong"))
                assertTrue(stranger.hearsReply() is Refused)
            }
            runner.clock.sleepNs(5 * NS_PER_S)
            assertTrue(runner.office.cancelled.isSet)
        }
    }
}
