package org.ondeviceprofiler.core

import java.io.IOException

/** One job, from its first load to its stop event. */
internal class Work(
    private val job: Job,
    files: DeviceFiles,
    private val journal: Journal,
    private val shell: Shell,
    private val cancelled: Signal,
) {
    private val clock = shell.clock
    private val tracer = Tracer(journal, job.sampling, shell)
    private val watcher = JobWatcher(journal, tracer.memory, cancelled)
    private val canary = Canary(shell.workload, journal, clock, job.sampling.canaryIntervalMs * NS_PER_MS)
    private val jobFiles = JobFiles(job, files)
    private val images = ImageKeeper(files.storage, journal)
    private var lastEndNs: Long? = null

    /** Do the whole job; every way it can end is a stop event. Throws IOException where that cannot be written. */
    fun run() {
        val ending = ending()
        try {
            tracer.end()
        } catch (_: IOException) {
            // Where there is no room for the last samples, the end may still find some.
        }
        val failed = ending.outcome != Outcome.COMPLETED
        val stage = watcher.stage.takeIf { failed }
        val component = watcher.component.takeIf { failed }
        journal.append { Stop(it, ending.outcome, ending.reason, stage, component, tracer.memory.read()) }
        journal.close()
    }

    @Suppress("TooGenericExceptionCaught") // the process edge: the journal must say that the job ended
    private fun ending(): Ending =
        try {
            begin()
            Ending(Outcome.COMPLETED)
        } catch (error: EngineFailure) {
            watcher.component = error.component // a stage may use several
            Ending.of(error)
        } catch (error: Throwable) {
            Ending.of(error)
        }

    private fun begin() {
        journal.append { Idle(it, tracer.memory.read()) }
        canary.cool()
        val inputs = jobFiles.inputs()
        val interpreter = interpreter()
        tracer.resume()
        interpreter.prepare()
        iterateAll { phase, number, traced -> iterate(interpreter, inputs, phase, number, traced) }
    }

    private fun iterateAll(iterate: (Phase, Int, Boolean) -> Unit) {
        iterate(Phase.COLD, 0, true)
        repeat(job.warmups) { iterate(Phase.WARMUP, it, true) }
        rest()
        tracer.look()
        repetitions().forEach { iterate(Phase.TIMED, it, true) }
        tracer.look()
        canary.between()
        repeat(2 * job.observerPairs) { iterate(Phase.OBSERVER, it, tracedInPair(it)) }
    }

    /** Order the pairs on-off, off-on, … so that a drift does not favour either. */
    private fun tracedInPair(number: Int): Boolean = number % 4 == 0 || number % 4 == 3

    private fun interpreter(): Interpreter {
        val bundle = jobFiles.bundle()
        images.expect(bundle.recipe.height, bundle.recipe.width)
        checkPlan(job.plan, bundle.components, fileConstants(job.plan, jobFiles.folder).keys)
        val constants = constantsOf(job.plan, jobFiles.folder)
        val engine = shell.open(job.engine, job.threads)
        return Interpreter(job.plan, bundle.components, jobFiles.folder, constants, engine, watcher, clock)
    }

    private fun repetitions(): Repetitions {
        val readiness = Readiness(tracer.environment::readinessMillicelsius, canary::glance, canary.coolNs)
        return Repetitions(job.measurement, job.repeats, clock, readiness, watcher::check, ::sayWhy)
    }

    /** Wait for the cable to be pulled where the job is untethered, then idle, while the gauges are read. */
    private fun rest() {
        val patience = Patience(clock, watcher::check, ::sayWhy)
        if (job.untethered) patience.untilUnplugged { tracer.environment.externalPower() }
        if (job.restS <= 0) return
        val startNs = clock.bootNs()
        patience.pause(job.restS, "a rest of ${shortly(job.restS)} s, as a baseline for energy")
        journal.append { Rest(it, startNs, clock.bootNs()) }
    }

    private fun sayWhy(reason: String) {
        journal.append { Waiting(it, reason) }
    }

    private fun iterate(
        interpreter: Interpreter,
        inputs: Map<String, Tensor>,
        phase: Phase,
        number: Int,
        traced: Boolean,
    ) {
        if (traced) tracer.resume() else tracer.pause()
        watcher.phase = phase
        watcher.iteration = number
        val iteration = interpreter.iterate(inputs)
        val digest = digestOf(iteration.product)
        record(iteration, phase, number, traced, digest)
        keep(iteration.product, phase, number, digest)
        if (phase != Phase.OBSERVER) canary.betweenIfDue() // pairs differ in their samplers alone
        tracer.flush()
        journal.sync()
    }

    private fun keep(product: Product, phase: Phase, number: Int, digest: String) {
        when (product) {
            is Image -> images.keep(product, phase, number, digest)
            is TensorProduct -> checkFinite(product.tensor, "output")
        }
    }

    private fun record(iteration: Iteration, phase: Phase, number: Int, traced: Boolean, digest: String) {
        val gapNs = lastEndNs?.let { iteration.startNs - it }
        lastEndNs = iteration.endNs
        val durationNs = iteration.endNs - iteration.startNs
        journal.append {
            IterationDone(it, phase, number, iteration.startNs, durationNs, gapNs, iteration.stages, digest, traced)
        }
    }
}
