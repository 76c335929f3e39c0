import java.util.Arrays;
import java.util.concurrent.Callable;

/**
 * Shortens the shutdown of Apache's clients: each joins its NettyEventExecutor thread, which looks at its stop flag
 * only when an event arrives or its poll of three seconds ends. While the work given here sits in that join, executor
 * threads that are idle in the poll are woken by an interrupt, which they log and survive.
 */
final class Hurry {
    private static final int CHECK_MS = 20;

    private Hurry() {
    }

    static <T> T through(Callable<T> work) throws Exception {
        Thread worker = Thread.currentThread();
        Thread watcher = new Thread(() -> watch(worker), "hurry");
        watcher.setDaemon(true);
        watcher.start();
        try {
            return work.call();
        } finally {
            watcher.interrupt();
            watcher.join();
        }
    }

    private static void watch(Thread worker) {
        try {
            while (true) {
                Thread.sleep(CHECK_MS);
                if (calls(worker, "ServiceThread.shutdown")) {
                    wakeIdleExecutors();
                }
            }
        } catch (InterruptedException finished) {
            return;
        }
    }

    private static void wakeIdleExecutors() {
        Thread[] threads = new Thread[Thread.activeCount() + 50];
        int count = Thread.enumerate(threads);
        for (int i = 0; i < count; i++) {
            if (threads[i].getName().equals("NettyEventExecutor") && calls(threads[i], "LinkedBlockingQueue.poll")) {
                threads[i].interrupt();
            }
        }
    }

    private static boolean calls(Thread thread, String method) {
        return Arrays.stream(thread.getStackTrace())
            .anyMatch(frame -> (frame.getClassName() + "." + frame.getMethodName()).endsWith(method));
    }
}
